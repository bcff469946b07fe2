// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::bf16, .epilogue = true}>;
template struct TallKernels<TallKey{.precision = Precision::bf16, .height = 128, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .aligned = false, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .height = 128, .aligned = false, .epilogue = true}>;

}  // namespace tessera::ops
