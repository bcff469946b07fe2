// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/dot_groups.cuh"

namespace tessera::ops {

const PackedDotFunctions packed_dot_bf16 = {make_dot_groups<__nv_bfloat16, 64, 2, 4>(),
                                            make_dot_groups<__nv_bfloat16, 128, 2, 2>()};

}  // namespace tessera::ops
