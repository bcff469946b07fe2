// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::bf16, .scaled = true}>;
template struct TallKernels<TallKey{.precision = Precision::bf16, .height = 128, .scaled = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .scaled = true, .aligned = false}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .height = 128, .scaled = true, .aligned = false}>;

}  // namespace tessera::ops
