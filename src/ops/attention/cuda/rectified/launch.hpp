// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// What the kernels of GATv2 on windows take: the launch of tall windows.
namespace tessera::ops {

/// Widths of heads, of which a block has one.
inline constexpr std::array<int, 3> rectified_widths = {32, 64, 128};
using RectifiedFunctions = std::array<TallAttentionFunction, rectified_widths.size()>;

extern const RectifiedFunctions rectified_gatv2_bf16, rectified_gatv2_fp16;

}  // namespace tessera::ops
