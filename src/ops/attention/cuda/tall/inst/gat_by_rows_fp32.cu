// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/gat_gradient.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_gat_by_rows_fp32 = make_gat_gradients<float, true>();

}  // namespace tessera::ops
