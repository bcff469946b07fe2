// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// What the kernels of GAT by factors of vertices take: the launch of tall windows.
namespace tessera::ops {

/// Features of a block; wider heads are shared by several.
constexpr int head_block_features(int width) { return width < 64 ? 32 : 64; }

using HeadAttentionFunctions = TallAttentionFunctions;

extern const HeadAttentionFunctions heads_gat_fp32, heads_gat_bf16, heads_gat_fp16;

}  // namespace tessera::ops
