// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{
    .precision = Precision::fp32, .height = 128, .planes = 2, .halves = true}>;

}  // namespace tessera::ops
