// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "ops/attention/cuda/short/gat_by_columns.cuh"
#include "ops/attention/cuda/short/gat_by_rows.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of GAT over windows of 16 rows in bf16, by the formulas of
/// tall/gat_gradient.cuh: gathered rows are summed with the factors of their columns, the edges of
/// either sign apart, and the factors of the own vertices come out of the sums. Pieces with extreme
/// factors take a second turn, by an exponential per cell.
namespace tessera::ops {

/// Warps that an SM should hold, as registers and shared memory allow.
template <int width, bool by_rows>
inline constexpr int short_gat_gradient_blocks = width == 64 ? (by_rows ? 16 : 12) : 8;

template <int width, bool by_rows>
using ShortGatGradient =
    std::conditional_t<by_rows, ShortGatByRows<width>, ShortGatByColumns<width>>;

template <int width, bool by_rows>
__global__
__launch_bounds__(32, (short_gat_gradient_blocks<width, by_rows>)) void differentiate_short_gat(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGatGradient<width, by_rows>>(launch);
}

template <bool by_rows>
constexpr ShortAttentionFunctions make_short_gat_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortGatGradient<short_head_widths[i], by_rows>,
                       differentiate_short_gat<short_head_widths[i], by_rows>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
