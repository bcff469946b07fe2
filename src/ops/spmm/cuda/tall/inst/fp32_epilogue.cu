// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::fp32, .planes = 2, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .height = 128, .planes = 2, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .planes = 2, .aligned = false, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .height = 128, .planes = 2, .aligned = false, .epilogue = true}>;

}  // namespace tessera::ops
