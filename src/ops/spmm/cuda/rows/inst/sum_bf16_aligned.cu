// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const RowsFunctions rows_bf16_aligned = {
    make_rows_functions<rows_policies, __nv_bfloat16, true, PatternSum<__nv_bfloat16>>(),
    make_rows_functions<rows_policies, __nv_bfloat16, true, WeightedSum<__nv_bfloat16>>(),
    make_rows_functions<rows_policies, __nv_bfloat16, true,
                        WithEpilogue<PatternSum<__nv_bfloat16>>>(),
    make_rows_functions<rows_policies, __nv_bfloat16, true,
                        WithEpilogue<WeightedSum<__nv_bfloat16>>>(),
};

}  // namespace tessera::ops
