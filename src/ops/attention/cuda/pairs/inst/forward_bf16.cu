// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/attention/cuda/pairs/forward.cuh"

namespace tessera::ops {

const PairForwards pair_forward_bf16 = {pair_forward<__nv_bfloat16, 32>,
                                        pair_forward<__nv_bfloat16, 64>,
                                        pair_forward<__nv_bfloat16, 128>};

}  // namespace tessera::ops
