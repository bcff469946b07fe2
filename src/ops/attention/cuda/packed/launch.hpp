// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// The kernels of GAT by packed weights, which take the launch of tall windows.
namespace tessera::ops {

/// Heads are the narrowest of `tall_head_widths`. A block has so many features of whole heads: with
/// more of them what all heads need is done for more at once.
inline constexpr std::array<int, 2> packed_block_features = {32, 64};
inline constexpr std::size_t num_packed_widths = 2;
using PackedFunctions =
    std::array<std::array<TallAttentionFunction, packed_block_features.size()>, num_packed_widths>;
extern const PackedFunctions packed_gat_bf16;

}  // namespace tessera::ops
