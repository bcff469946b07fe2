// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/spmm/cuda/rows.hpp"

/// The kernels, compiled in units of their own (inst_rows_*.cu): for every policy one function for
/// each precision, rows of X on 16-byte boundaries or anywhere, edges without or with weights.
namespace tessera::ops {

using RowsFunctions = std::array<RowsFunction, rows_policies.size()>;

extern const RowsFunctions rows_fp32_aligned_pattern, rows_fp32_aligned_weighted;
extern const RowsFunctions rows_fp32_scalar_pattern, rows_fp32_scalar_weighted;
extern const RowsFunctions rows_bf16_aligned_pattern, rows_bf16_aligned_weighted;
extern const RowsFunctions rows_bf16_scalar_pattern, rows_bf16_scalar_weighted;
extern const RowsFunctions rows_fp16_aligned_pattern, rows_fp16_aligned_weighted;
extern const RowsFunctions rows_fp16_scalar_pattern, rows_fp16_scalar_weighted;

}  // namespace tessera::ops
