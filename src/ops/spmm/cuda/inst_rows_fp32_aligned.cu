// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp32_aligned_pattern = make_rows_functions<float, true, false>();
const RowsFunctions rows_fp32_aligned_weighted = make_rows_functions<float, true, true>();

}  // namespace tessera::ops
