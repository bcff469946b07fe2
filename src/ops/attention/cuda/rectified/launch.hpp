// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// What the kernels of GATv2 on windows take: the launch of tall windows.
namespace tessera::ops {

/// Widths of heads, of which a block has one.
inline constexpr std::array<int, 3> rectified_widths = {32, 64, 128};
using RectifiedFunctions = std::array<TallAttentionFunction, rectified_widths.size()>;

extern const RectifiedFunctions rectified_gatv2_bf16, rectified_gatv2_fp16;

/// The backward pass, over rows for targets, then over columns, takes the first of these widths.
inline constexpr std::size_t num_rectified_gradients = 2;
using RectifiedGradientFunctions = std::array<TallAttentionFunction, num_rectified_gradients>;
extern const RectifiedGradientFunctions rectified_by_rows_bf16, rectified_by_columns_bf16;

}  // namespace tessera::ops
