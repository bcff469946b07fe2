// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/instances.cuh"

namespace tessera::ops {

template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::fp32, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::fp32, true}>;
template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::fp32, false, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::quads, Precision::fp32, true, false}>;

}  // namespace tessera::ops
