// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/attention/cuda/tall/launch.hpp"

/// Attention over windows of 16 rows, one warp each.
namespace tessera::ops {

inline constexpr int short_attention_height = 16;

/// Widths of heads that there are kernels for.
inline constexpr std::array<int, 2> short_head_widths = {64, 128};
using ShortAttentionFunctions = std::array<TallAttentionFunction, short_head_widths.size()>;

extern const ShortAttentionFunctions short_dot_bf16, short_dot_fp16, short_gat_bf16;
/// The backward pass: over rows for targets, then over columns.
extern const ShortAttentionFunctions short_dot_by_rows_bf16, short_dot_by_columns_bf16;
extern const ShortAttentionFunctions short_gat_by_rows_bf16, short_gat_by_columns_bf16;

/// The same of GATv2, whose widest heads have no backward pass.
inline constexpr std::array<int, 3> short_gatv2_widths = {32, 64, 128};
inline constexpr std::size_t num_short_gatv2_gradients = short_gatv2_widths.size() - 1;
using ShortGatV2Functions = std::array<TallAttentionFunction, short_gatv2_widths.size()>;
using ShortGatV2Gradients = std::array<TallAttentionFunction, num_short_gatv2_gradients>;

extern const ShortGatV2Functions short_gatv2_bf16, short_gatv2_fp16;
extern const ShortGatV2Gradients short_gatv2_by_rows_bf16, short_gatv2_by_columns_bf16;

}  // namespace tessera::ops
