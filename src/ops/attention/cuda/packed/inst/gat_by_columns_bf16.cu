// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/gradient.cuh"

namespace tessera::ops {

const PackedGradientFunctions packed_gat_by_columns_bf16 = make_packed_gradients<false>();

}  // namespace tessera::ops
