// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/attention/cuda/window_functions.hpp"

/// Attention over windows of 16 rows, one warp each.
namespace tessera::ops {

/// Widths of heads that there are kernels for.
inline constexpr std::array<int, 2> short_head_widths = {64, 128};
extern const FunctionsOf<short_head_widths> short_dot_bf16, short_dot_fp16, short_gat_bf16;
extern const SweepsOf<short_head_widths> short_dot_gradient_bf16, short_gat_gradient_bf16;

/// The forward pass of GAT that keeps sums for the backward pass, of heads so wide.
inline constexpr int kept_head_width = 64;
extern const KeepingFunctions short_gat_keeping_bf16;

/// The passes of GATv2, whose widest heads have no backward pass.
inline constexpr std::array<int, 3> short_gatv2_widths = {32, 64, 128};
inline constexpr std::array<int, 2> short_gatv2_gradient_widths = {32, 64};
extern const FunctionsOf<short_gatv2_widths> short_gatv2_bf16, short_gatv2_fp16;
extern const SweepsOf<short_gatv2_gradient_widths> short_gatv2_gradient_bf16;

}  // namespace tessera::ops
