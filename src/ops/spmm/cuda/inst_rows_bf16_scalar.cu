// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.cuh"

namespace tessera::ops {

const RowsFunctions rows_bf16_scalar_pattern = make_rows_functions<__nv_bfloat16, false, false>();
const RowsFunctions rows_bf16_scalar_weighted = make_rows_functions<__nv_bfloat16, false, true>();

}  // namespace tessera::ops
