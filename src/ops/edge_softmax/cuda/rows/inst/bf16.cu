// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/kernel.cuh"

namespace tessera::ops {

const SoftmaxFunctions softmax_rows_bf16 = make_softmax_functions<__nv_bfloat16>();

}  // namespace tessera::ops
