// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "ops/attention/cuda/window_functions.hpp"
#include "tessera/ops/attention.hpp"

/// The kernels of attention on tall windows.
namespace tessera::ops {

/// Widths of heads that there are kernels for.
inline constexpr std::array<int, 5> tall_head_widths = {8, 16, 32, 64, 128};

/// Dot products take the first of `tall_head_widths`, in fp32 one more: wider heads of 16 bits are
/// better off on short windows.
inline constexpr std::array<int, 3> tall_dot_widths = {8, 16, 32};
inline constexpr std::array<int, 4> plane_dot_widths = {8, 16, 32, 64};
template <std::size_t bytes>
constexpr const auto& dot_widths() {
  if constexpr (bytes == 4) return plane_dot_widths;
  if constexpr (bytes == 2) return tall_dot_widths;
}
extern const FunctionsOf<tall_dot_widths> tall_dot_bf16, tall_dot_fp16;
extern const FunctionsOf<plane_dot_widths> tall_dot_fp32;
extern const SweepsOf<tall_dot_widths> tall_dot_gradient_bf16;
extern const SweepsOf<plane_dot_widths> tall_dot_gradient_fp32;

// GAT has three kinds of kernels. *Scaled rows*, in fp32 and fp16: gathered rows are scaled by
// factors of their vertices. *Packed weights*, of narrow heads in bf16: weights are fp16. *Factored
// weights*, of other heads in bf16: weights in two parts are products of factors.

/// The first of `tall_head_widths` are narrow: a block has several heads.
inline constexpr std::array<int, 2> narrow_head_widths = {8, 16};
inline constexpr std::array<int, 3> wide_head_widths = {32, 64, 128};
extern const FunctionsOf<wide_head_widths> factored_gat_bf16;
extern const SweepsOf<wide_head_widths> factored_gradient_bf16, factored_gradient_fp32;

/// Features of a block of scaled rows; wider heads are shared by several.
constexpr int scaled_block_features(int width) { return width < 64 ? 32 : 64; }
extern const FunctionsOf<tall_head_widths> scaled_gat_fp32, scaled_gat_fp16;
extern const SweepsOf<narrow_head_widths> scaled_gradient_fp32, scaled_gradient_fp16;

/// A block of packed weights has so many features of whole heads: with more of them what all heads
/// need is done for more at once.
inline constexpr std::array<int, 2> packed_block_features = {32, 64};
extern const std::array<FunctionsOf<packed_block_features>, narrow_head_widths.size()>
    packed_gat_bf16;
/// The same of the backward pass.
inline constexpr int packed_gradient_features = 64;
extern const SweepsOf<narrow_head_widths> packed_gradient_bf16;

}  // namespace tessera::ops
