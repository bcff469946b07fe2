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

extern const ShortAttentionFunctions short_dot_bf16, short_dot_fp16, short_gatv2_bf16,
    short_gatv2_fp16;
/// The backward pass of dot products: over rows for targets, then over columns.
extern const ShortAttentionFunctions short_dot_by_rows_bf16, short_dot_by_columns_bf16;
/// The same of GATv2, for heads of 64 features.
extern const TallAttentionFunction short_gatv2_by_rows_bf16, short_gatv2_by_columns_bf16;

}  // namespace tessera::ops
