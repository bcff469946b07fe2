// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/kernel.cuh"

namespace tessera::ops {

const ShortDotsFunctions short_dots_bf16 =
    make_short_dots<__nv_bfloat16, DotStore<__nv_bfloat16>>();
const ShortDotsFunctions direct_dots_bf16 =
    make_short_dots<__nv_bfloat16, DirectStore<__nv_bfloat16>>();

}  // namespace tessera::ops
