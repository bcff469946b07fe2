// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/gradient.cuh"

namespace tessera::ops {

const PackedGradientFunctions packed_gat_by_rows_bf16 = make_packed_gradients<true>();

}  // namespace tessera::ops
