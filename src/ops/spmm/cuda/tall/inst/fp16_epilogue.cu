// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::fp16, .epilogue = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp16, .height = 128, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp16, .scaled = true, .epilogue = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp16, .height = 128, .scaled = true, .epilogue = true}>;

}  // namespace tessera::ops
