// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/kernel.cuh"

namespace tessera::ops {

const ShortFunctions short_bf16 = short_functions<__nv_bfloat16, false>;
const ShortFunctions short_bf16_with_epilogue = short_functions<__nv_bfloat16, true>;

}  // namespace tessera::ops
