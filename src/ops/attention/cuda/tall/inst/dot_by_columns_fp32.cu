// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_gradient.cuh"

namespace tessera::ops {

const PlaneDotFunctions tall_dot_by_columns_fp32 =
    make_dot_gradients<float, false, num_plane_widths>();

}  // namespace tessera::ops
