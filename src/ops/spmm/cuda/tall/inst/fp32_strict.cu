// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::fp32, .strict = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .strict = true, .aligned = false}>;

}  // namespace tessera::ops
