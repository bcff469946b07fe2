// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.cuh"

namespace tessera::ops {

const RowsFunctions rows_bf16_aligned_pattern = make_rows_functions<__nv_bfloat16, true, false>();
const RowsFunctions rows_bf16_aligned_weighted = make_rows_functions<__nv_bfloat16, true, true>();

}  // namespace tessera::ops
