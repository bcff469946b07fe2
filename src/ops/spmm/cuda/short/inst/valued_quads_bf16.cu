// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/spmm/cuda/short/kernel.cuh"

namespace tessera::ops {

template struct ShortKernels<ShortKey{ShortEncoding::valued_quads, Precision::bf16, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::valued_quads, Precision::bf16, false, false}>;

}  // namespace tessera::ops
