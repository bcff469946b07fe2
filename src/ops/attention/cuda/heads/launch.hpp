// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// What the kernels of GAT by factors of vertices take: the launch of tall windows.
namespace tessera::ops {

/// Features of a block; wider heads are shared by several.
constexpr int head_block_features(int width) { return width < 64 ? 32 : 64; }

using HeadAttentionFunctions = TallAttentionFunctions;

extern const HeadAttentionFunctions heads_gat_fp32, heads_gat_bf16, heads_gat_fp16;

/// The backward pass, in fp32 and fp16, takes the narrowest of `tall_head_widths`, of which a warp
/// has whole heads.
inline constexpr std::size_t num_gradient_widths = 2;
using HeadGradientFunctions = std::array<TallAttentionFunction, num_gradient_widths>;

/// Over rows for targets, then over columns for sources and values.
struct HeadGradientPasses {
  HeadGradientFunctions by_rows, by_columns;
};
/// Numbers per row of a cut window: three per head by rows, and by columns one beside the features.
constexpr std::int64_t gat_row_slot(const AttentionOptions& options) { return 3 * options.heads; }
constexpr std::int64_t gat_column_slot(const AttentionOptions& options) {
  return options.features + options.heads;
}
extern const HeadGradientPasses heads_gradient_fp32, heads_gradient_fp16;

}  // namespace tessera::ops
