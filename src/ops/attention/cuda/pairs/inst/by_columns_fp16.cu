// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/pairs/backward.cuh"

namespace tessera::ops {

const PairGradients pair_by_columns_fp16 = make_pair_gradients<__half, false>();

}  // namespace tessera::ops
