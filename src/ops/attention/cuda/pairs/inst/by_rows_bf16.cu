// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/pairs/backward.cuh"

namespace tessera::ops {

const PairGradients pair_by_rows_bf16 = make_pair_gradients<__nv_bfloat16, true>();

}  // namespace tessera::ops
