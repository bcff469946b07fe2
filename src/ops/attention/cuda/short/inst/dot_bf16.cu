// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/kernel.cuh"

namespace tessera::ops {

const ShortAttentionFunctions short_dot_bf16 = make_short_dots<__nv_bfloat16>();

}  // namespace tessera::ops
