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

}  // namespace tessera::ops
