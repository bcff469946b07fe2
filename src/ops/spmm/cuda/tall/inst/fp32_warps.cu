// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{.precision = Precision::fp32, .planes = 2, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .planes = 2, .aligned = false, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .planes = 2, .epilogue = true, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .planes = 2, .valued = true, .warps = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .planes = 2, .valued = true, .aligned = false, .warps = true}>;

}  // namespace tessera::ops
