// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// What translation would make of a graph, estimated from some of its windows: what a cost model
/// needs without the cost of translating.
struct WindowSample {
  double columns = 0;          ///< distinct ones of all windows together
  double rest_edges = 0;       ///< of columns that too few rows use
  double longest_columns = 0;  ///< of the longest window, as far as its edges tell
};

/// Windows that cost models ask about.
struct SampledWindows {
  int height = 64;
  int min_uses = 1;
};
inline constexpr std::array<SampledWindows, 7> sampled_windows = {
    {{8, 1}, {16, 1}, {64, 1}, {128, 1}, {128, 3}, {256, 1}, {256, 3}}};

/// So many windows are looked at, evenly spread: the i-th is windows * i / (so many). It stands for
/// all windows up to the next.
inline constexpr std::int64_t most_sampled = 512;

/// What windows have together.
struct WindowSums {
  std::int64_t edges = 0;
  std::int64_t columns = 0;  ///< distinct ones that enough rows use
  std::int64_t dense_edges = 0;

  WindowSums operator+(const WindowSums& other) const {
    return {edges + other.edges, columns + other.columns, dense_edges + other.dense_edges};
  }

  /// What a window says of all windows around it. It counts as so many of its kind, light windows
  /// for no more: they share less than heavy ones beside them. Where the others have far fewer
  /// edges it counts less: a first window with all hubs of a graph is not every fifth. The same
  /// numbers on CPU and GPU.
  constexpr WindowSums for_windows(std::int64_t windows, std::int64_t edges_around) const {
    if (edges == 0) return {};
    constexpr double most_times_around = 4;
    const double as_many = static_cast<double>(windows);
    const double at_most =
        most_times_around * static_cast<double>(edges_around) / static_cast<double>(edges);
    const double times = as_many < at_most ? as_many : at_most;
    const auto scaled = [times](std::int64_t count) {
      return static_cast<std::int64_t>(static_cast<double>(count) * times);
    };
    return {scaled(edges), scaled(columns), scaled(dense_edges)};
  }
};

/// What such sums say of all windows of rows with these offsets.
WindowSample estimate(const WindowSums& sums, std::span<const EdgeOffset> offsets,
                      VertexId num_cols, int height);

/// From now on `sample_windows` returns this.
void know_sample(const Graph& graph, const SampledWindows& windows, Side side,
                 const WindowSample& sample);

/// Evenly spread windows, the same for the same graph. Columns that fewer than `min_uses` rows use
/// do not count. Kept with the graph.
WindowSample sample_windows(const Graph& graph, int height, Side side, int min_uses = 1);

/// What the sizes of tiles follow from: with it they are made without waiting for a GPU.
struct WindowCounts {
  std::vector<std::int32_t> columns;  ///< distinct ones of each window that enough rows use
  EdgeOffset dense_edges = 0;         ///< of these columns, of all windows together
};

/// From now on `known_window_counts` returns this.
void know_window_counts(const Graph& graph, const SampledWindows& windows, Side side,
                        WindowCounts counts);

/// Null where they have not been counted.
std::shared_ptr<const WindowCounts> known_window_counts(const Graph& graph,
                                                        const SampledWindows& windows, Side side);

/// Windows that may go to one core or another, each by itself.
inline constexpr SampledWindows chosen_windows = {64, 1};

/// The distinct columns of each of the `chosen_windows` that are looked at. Kept with the graph.
std::shared_ptr<const std::vector<std::int32_t>> sampled_columns(const Graph& graph, Side side);

/// From now on `sampled_columns` returns this.
void know_sampled_columns(const Graph& graph, Side side, std::vector<std::int32_t> columns);

}  // namespace tessera::tiles
