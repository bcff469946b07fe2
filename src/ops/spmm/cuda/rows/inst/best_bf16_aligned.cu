// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const BestFunctions best_bf16_aligned = {
    make_rows_functions<best_policies, __nv_bfloat16, true, Best<__nv_bfloat16>>(),
    make_rows_functions<best_policies, __nv_bfloat16, true, WonSum<__nv_bfloat16>>(),
    make_rows_functions<best_policies, __nv_bfloat16, true, WithEpilogue<Best<__nv_bfloat16>>>(),
};

}  // namespace tessera::ops
