// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::bf16, .valued = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::bf16, .valued = true, .aligned = false}>;

}  // namespace tessera::ops
