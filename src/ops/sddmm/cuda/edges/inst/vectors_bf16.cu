// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/kernel.cuh"

namespace tessera::ops {

const VectorFunctions edge_vectors_bf16 = make_edge_vectors<__nv_bfloat16>();

}  // namespace tessera::ops
