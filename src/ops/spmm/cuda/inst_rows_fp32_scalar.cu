// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp32_scalar_pattern = make_rows_functions<float, false, false>();
const RowsFunctions rows_fp32_scalar_weighted = make_rows_functions<float, false, true>();

}  // namespace tessera::ops
