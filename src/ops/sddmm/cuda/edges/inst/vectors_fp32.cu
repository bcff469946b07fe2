// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/kernel.cuh"

namespace tessera::ops {

const VectorFunctions edge_vectors_fp32 = make_edge_vectors<float>();

}  // namespace tessera::ops
