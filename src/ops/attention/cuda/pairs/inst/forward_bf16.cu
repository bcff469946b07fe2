// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/pairs/forward.cuh"

namespace tessera::ops {

const PairForwards pair_forward_bf16 = make_pair_forwards<__nv_bfloat16>();

}  // namespace tessera::ops
