// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/kernel.cuh"

namespace tessera::ops {

const SoftmaxFunctions softmax_rows_fp32 = make_softmax_functions<float>();

}  // namespace tessera::ops
