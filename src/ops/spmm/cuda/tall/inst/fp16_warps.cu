// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::fp16, .warps = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp16, .scaled = true, .warps = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp16, .aligned = false, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp16, .scaled = true, .aligned = false, .warps = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp16, .epilogue = true, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp16, .scaled = true, .epilogue = true, .warps = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp16, .valued = true, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp16, .valued = true, .aligned = false, .warps = true}>;

}  // namespace tessera::ops
