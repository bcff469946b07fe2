// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::bf16, .scaled = true, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .scaled = true, .aligned = false, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .scaled = true, .epilogue = true, .warps = true}>;

}  // namespace tessera::ops
