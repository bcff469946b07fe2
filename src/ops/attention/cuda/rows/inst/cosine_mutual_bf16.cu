// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/mutual.cuh"

namespace tessera::ops {

const MutualFunctions cosine_mutual_bf16 = make_mutual_functions<__nv_bfloat16>();

}  // namespace tessera::ops
