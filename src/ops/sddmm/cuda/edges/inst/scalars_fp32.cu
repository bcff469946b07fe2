// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/kernel.cuh"

namespace tessera::ops {

const ScalarFunctions edge_scalars_fp32 = make_edge_scalars<float>();

}  // namespace tessera::ops
