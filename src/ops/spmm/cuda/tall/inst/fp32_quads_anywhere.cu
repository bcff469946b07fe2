// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/instances.cuh"

namespace tessera::ops {

template struct TallKernels<TallKey{
    .precision = Precision::fp32, .height = 128, .planes = 2, .aligned = false, .quads = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp32,
                                    .height = 128,
                                    .planes = 2,
                                    .aligned = false,
                                    .epilogue = true,
                                    .quads = true}>;
template struct TallKernels<TallKey{
    .precision = Precision::fp32, .height = 256, .planes = 2, .aligned = false, .quads = true}>;
template struct TallKernels<TallKey{.precision = Precision::fp32,
                                    .height = 256,
                                    .planes = 2,
                                    .aligned = false,
                                    .epilogue = true,
                                    .quads = true}>;

}  // namespace tessera::ops
