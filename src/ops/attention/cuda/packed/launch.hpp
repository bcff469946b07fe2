// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// What the kernels of GAT by packed weights take: the launch of tall windows.
namespace tessera::ops {

/// Features of a block, whose heads have 8 or 16: the first of `tall_head_widths`.
inline constexpr int packed_block_features = 32;
inline constexpr std::size_t num_packed_widths = 2;

extern const std::array<TallAttentionFunction, num_packed_widths> packed_gat_bf16;

}  // namespace tessera::ops
