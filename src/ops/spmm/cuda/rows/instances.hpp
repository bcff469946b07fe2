// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/spmm/cuda/rows/launch.hpp"

/// The kernels, compiled in units of their own (inst/): for every policy one function for each
/// precision, and for rows of X on 16-byte boundaries or anywhere.
namespace tessera::ops {

/// Sums over edges without or with weights, and the same with an epilogue. Where rows lie anywhere,
/// the epilogue's are the same twice: weights that are not there are 1.
struct RowsFunctions {
  using Functions = std::array<RowsFunction, rows_policies.size()>;
  Functions pattern, weighted;
  Functions pattern_with_epilogue, weighted_with_epilogue;
};

extern const RowsFunctions rows_fp32_aligned, rows_fp32_scalar;
extern const RowsFunctions rows_bf16_aligned, rows_bf16_scalar;
extern const RowsFunctions rows_fp16_aligned, rows_fp16_scalar;

/// Max and min, their gradient with respect to X, and max and min with an epilogue.
struct BestFunctions {
  using Functions = std::array<RowsFunction, best_policies.size()>;
  Functions best, won, with_epilogue;
};

extern const BestFunctions best_fp32_aligned, best_fp32_scalar;
extern const BestFunctions best_bf16_aligned, best_bf16_scalar;
extern const BestFunctions best_fp16_aligned, best_fp16_scalar;

}  // namespace tessera::ops
