// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/attention/cuda/row_launch.hpp"

/// GATv2 of 16-bit features by pairs of rows, on matrix instructions.
namespace tessera::ops {

/// Widths of heads that there are kernels for; the widest have no backward pass.
inline constexpr std::array<int, 3> pair_widths = {32, 64, 128};
inline constexpr std::size_t num_pair_gradients = pair_widths.size() - 1;
using PairForwards = std::array<RowsAttentionFunction, pair_widths.size()>;
using PairGradients = std::array<RowsAttentionFunction, num_pair_gradients>;

extern const PairForwards pair_forward_bf16, pair_forward_fp16;
/// Over rows for targets, then over columns.
extern const PairGradients pair_by_rows_bf16, pair_by_rows_fp16, pair_by_columns_bf16,
    pair_by_columns_fp16;

}  // namespace tessera::ops
