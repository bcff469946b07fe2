// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/instances.cuh"

namespace tessera::ops {

template struct ShortKernels<ShortKey{ShortEncoding::bits, Precision::fp16, false}>;
template struct ShortKernels<ShortKey{ShortEncoding::bits, Precision::fp16, true}>;

}  // namespace tessera::ops
