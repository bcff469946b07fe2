// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gat_gradient.cuh"

namespace tessera::ops {

const ShortAttentionFunctions short_gat_by_rows_bf16 = make_short_gat_gradients<true>();

}  // namespace tessera::ops
