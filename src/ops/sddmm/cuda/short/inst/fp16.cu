// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/kernel.cuh"

namespace tessera::ops {

const ShortDotsFunctions short_dots_fp16 = make_short_dots<__half, DotStore<__half>>();
const ShortDotsFunctions direct_dots_fp16 = make_short_dots<__half, DirectStore<__half>>();

}  // namespace tessera::ops
