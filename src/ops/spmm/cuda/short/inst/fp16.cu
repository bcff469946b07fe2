// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/kernel.cuh"

namespace tessera::ops {

const ShortFunctions short_fp16 = short_functions<__half, false>;
const ShortFunctions short_fp16_with_epilogue = short_functions<__half, true>;

}  // namespace tessera::ops
