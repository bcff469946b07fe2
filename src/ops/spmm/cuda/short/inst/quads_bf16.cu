// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/short/kernel.cuh"

namespace tessera::ops {

template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::bf16, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::bf16, true}>;
template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::bf16, false, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::bf16, true, false}>;

}  // namespace tessera::ops
