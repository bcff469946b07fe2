// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/kernel.cuh"

namespace tessera::ops {

const DotTilesFunctions dot_tiles_bf16 = make_dot_tiles_functions<__nv_bfloat16>();

}  // namespace tessera::ops
