// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/kernel.cuh"

namespace tessera::ops {

const DotTilesFunctions dot_tiles_fp32 = make_dot_tiles_functions<float>();

}  // namespace tessera::ops
