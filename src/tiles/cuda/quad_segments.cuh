// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/search.cuh"
#include "tiles/quad_order.hpp"

/// Windows as sets of rows, and the segments of their columns in which quads are looked for.
namespace tessera::tiles {

inline constexpr int quad_block_warps = 4;
inline constexpr int quad_block_threads = 32 * quad_block_warps;
inline constexpr unsigned all_lanes = ~0u;

__device__ inline int lane_number() { return static_cast<int>(threadIdx.x) % 32; }

__device__ inline std::int64_t warp_number() {
  return std::int64_t{blockIdx.x} * quad_block_warps + threadIdx.x / 32;
}

/// Windows whose columns are sets of rows.
///
/// Segments have numbers that follow from where windows begin: the first of every window its
/// number, and then all others, of which a window has enough numbers wherever it begins, and may
/// leave the last one without columns.
struct SetsView {
  std::int64_t num_windows = 0;
  std::int64_t num_segments = 0;
  const EdgeOffset* step_offsets = nullptr;  ///< of 16 columns
  const VertexId* columns = nullptr;
  const std::uint32_t* sets = nullptr;

  __device__ std::int64_t first_column(std::int64_t window) const {
    return step_offsets[window] * step_columns;
  }
  /// Segments of the windows before, without their first ones.
  __device__ std::int64_t later_segments(std::int64_t window) const {
    return first_column(window) / segment_columns;
  }
  __device__ std::int64_t segment_number(std::int64_t window, std::int32_t in_window) const {
    return in_window == 0 ? window : num_windows + later_segments(window) + in_window - 1;
  }
  /// The window that has the segment of this number among the later ones.
  __device__ std::int64_t window_of_later(std::int64_t later) const {
    std::int64_t window = 0;
    for (std::int64_t end = num_windows; end - window > 1;) {
      const std::int64_t middle = window + (end - window) / 2;
      (later_segments(middle) <= later ? window : end) = middle;
    }
    return window;
  }
  /// Columns that fill the last step repeat the last one.
  __device__ QuadOrder order(std::int64_t window) const {
    const std::int64_t first = first_column(window);
    const std::int64_t end = first_column(window + 1);
    if (first == end) return {};
    const std::int64_t last = cuda::lower_bound(columns, end - step_columns, end, columns[end - 1]);
    return {static_cast<std::int32_t>(last + 1 - first)};
  }
};

/// A part of a window's order.
struct Segment {
  Segment() = default;
  __device__ Segment(const SetsView& view, std::int64_t window, const QuadOrder& window_order,
                     std::int32_t in_window)
      : order(window_order), first_column(view.first_column(window)) {
    if (in_window >= order.num_segments()) return;
    first_place = order.first_place(in_window);
    num_columns = order.first_place(in_window + 1) - first_place;
    first_note = (first_column + first_place) / 2;
  }

  /// Of the window.
  __device__ std::int32_t column(std::int32_t place) const {
    return order.column(first_place + place);
  }
  /// All but one have two columns or more, since what comes second always fits.
  __device__ std::int32_t most_quads() const { return (num_columns + 1) / 2; }

  QuadOrder order;
  std::int64_t first_column = 0;
  std::int64_t first_note = 0;  ///< of its quads, among those of all segments
  std::int32_t first_place = 0;
  std::int32_t num_columns = 0;
};

__device__ inline Segment numbered_segment(const SetsView& view, std::int64_t number) {
  const std::int64_t later = number - view.num_windows;
  if (later < 0) return {view, number, view.order(number), 0};
  const std::int64_t window = view.window_of_later(later);
  return {view, window, view.order(window),
          static_cast<std::int32_t>(1 + later - view.later_segments(window))};
}

/// The places of a quad's columns in their segment, counted from 1; 0: none.
using QuadNote = ushort4;

}  // namespace tessera::tiles
