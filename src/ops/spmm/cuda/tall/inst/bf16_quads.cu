// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::bf16, .height = 256, .quads = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .height = 256, .epilogue = true, .quads = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .height = 256, .aligned = false, .quads = true}>;
template struct TallKernels<TallKey{.precision = Precision::bf16,
                                    .height = 256,
                                    .aligned = false,
                                    .epilogue = true,
                                    .quads = true}>;

}  // namespace tessera::ops
