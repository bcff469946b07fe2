// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/plane_dots.cuh"

namespace tessera::ops {

const PlaneDotFunctions tall_dot_fp32 =
    make_plane_dots(std::make_index_sequence<num_plane_widths>{});

}  // namespace tessera::ops
