// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/kernel.cuh"

namespace tessera::ops {

const ShortDotsFunctions short_dots_fp32 = make_short_dots<float, DotStore<float>>();
const ShortDotsFunctions direct_dots_fp32 = make_short_dots<float, DirectStore<float>>();

}  // namespace tessera::ops
