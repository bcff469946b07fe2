// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/pairs/forward.cuh"

namespace tessera::ops {

const PairForwards pair_forward_fp16 = make_pair_forwards<__half>();

}  // namespace tessera::ops
