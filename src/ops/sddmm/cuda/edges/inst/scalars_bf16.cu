// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/kernel.cuh"

namespace tessera::ops {

const ScalarFunctions edge_scalars_bf16 = make_edge_scalars<__nv_bfloat16>();

}  // namespace tessera::ops
