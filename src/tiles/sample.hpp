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
/// the edges of all windows up to the next: a first one with all hubs is not every fifth.
inline constexpr std::int64_t most_sampled = 512;

/// What windows have together.
struct WindowSums {
  std::int64_t edges = 0;
  std::int64_t columns = 0;  ///< distinct ones that enough rows use
  std::int64_t dense_edges = 0;

  WindowSums operator+(const WindowSums& other) const {
    return {edges + other.edges, columns + other.columns, dense_edges + other.dense_edges};
  }

  /// What a window says of so many edges around it: none where it has none. The same numbers on
  /// CPU and GPU.
  constexpr WindowSums for_edges(std::int64_t around) const {
    if (edges == 0) return {};
    const double times = static_cast<double>(around) / static_cast<double>(edges);
    return {around, static_cast<std::int64_t>(static_cast<double>(columns) * times),
            static_cast<std::int64_t>(static_cast<double>(dense_edges) * times)};
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

/// Windows that may go to one core or another, each by itself.
inline constexpr SampledWindows chosen_windows = {64, 1};

/// The distinct columns of each of the `chosen_windows` that are looked at. Kept with the graph.
std::shared_ptr<const std::vector<std::int32_t>> sampled_columns(const Graph& graph, Side side);

/// From now on `sampled_columns` returns this.
void know_sampled_columns(const Graph& graph, Side side, std::vector<std::int32_t> columns);

}  // namespace tessera::tiles
