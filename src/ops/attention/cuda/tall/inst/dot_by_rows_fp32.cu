// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_gradient.cuh"

namespace tessera::ops {

const PlaneDotFunctions tall_dot_by_rows_fp32 = make_dot_gradients<float, true, num_plane_widths>();

}  // namespace tessera::ops
