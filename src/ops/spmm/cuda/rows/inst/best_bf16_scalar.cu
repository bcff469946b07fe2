// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const BestFunctions best_bf16_scalar = {
    make_rows_functions<best_policies, __nv_bfloat16, false, Best<__nv_bfloat16>>(),
    make_rows_functions<best_policies, __nv_bfloat16, false, WonSum<__nv_bfloat16>>(),
    make_rows_functions<best_policies, __nv_bfloat16, false, WithEpilogue<Best<__nv_bfloat16>>>(),
};

}  // namespace tessera::ops
