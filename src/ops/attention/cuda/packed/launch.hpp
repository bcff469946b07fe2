// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// The kernels with weights of 16 bits, which take the launch of tall windows.
namespace tessera::ops {

/// The narrowest heads of `tall_head_widths` have weights in fp16. A block has so many features of
/// whole heads: with more of them what all heads need is done for more at once.
inline constexpr std::array<int, 2> packed_block_features = {32, 64};
inline constexpr std::size_t num_packed_widths = 2;
using PackedFunctions =
    std::array<std::array<TallAttentionFunction, packed_block_features.size()>, num_packed_widths>;
extern const PackedFunctions packed_gat_bf16;

/// The backward pass of heads that fill more than the smaller block has so many features a block.
inline constexpr int packed_gradient_features = 64;
using PackedGradientFunctions = std::array<TallAttentionFunction, num_packed_widths>;
extern const PackedGradientFunctions packed_gat_by_rows_bf16, packed_gat_by_columns_bf16;

}  // namespace tessera::ops
