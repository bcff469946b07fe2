// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/instances.cuh"

namespace tessera::ops {

template struct ShortKernels<ShortKey{ShortEncoding::valued_quads, Precision::bf16, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::valued_quads, Precision::bf16, false, false}>;

}  // namespace tessera::ops
