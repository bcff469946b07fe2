// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp16_scalar_pattern = make_rows_functions<__half, false, false>();
const RowsFunctions rows_fp16_scalar_weighted = make_rows_functions<__half, false, true>();

}  // namespace tessera::ops
