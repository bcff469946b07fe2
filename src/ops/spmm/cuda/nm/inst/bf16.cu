// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/nm/kernel.cuh"

namespace tessera::ops {

template struct NmKernels<NmKey{Precision::bf16, false}>;
template struct NmKernels<NmKey{Precision::bf16, true}>;

}  // namespace tessera::ops
