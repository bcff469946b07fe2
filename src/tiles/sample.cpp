// SPDX-License-Identifier: Apache-2.0
#include "tiles/sample.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "graph/access.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

/// What the windows that were looked at have together.
struct Sums {
  std::int64_t edges = 0;
  std::int64_t columns = 0;  ///< distinct ones that enough rows use
  std::int64_t dense_edges = 0;

  Sums operator+(const Sums& other) const {
    return {edges + other.edges, columns + other.columns, dense_edges + other.dense_edges};
  }
};

WindowSample taken(const SideRows& rows, int height, int min_uses) {
  constexpr std::int64_t most_windows = 128;
  constexpr std::int64_t grain = 8;
  const std::int64_t windows = rows.num_windows(height);
  const auto end_of = [&](std::int64_t w) {
    return std::min<std::int64_t>(rows.num_rows, (w + 1) * height);
  };
  const auto edges_of = [&](std::int64_t w) {
    return rows.offsets[static_cast<std::size_t>(end_of(w))] -
           rows.offsets[static_cast<std::size_t>(w * height)];
  };
  const std::int64_t taken_windows = std::min(windows, most_windows);
  const auto look_at = [&](std::int64_t begin, std::int64_t end) {
    WindowColumns window;
    Sums sums;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t w = windows * i / taken_windows;
      window.count(rows, static_cast<VertexId>(w * height), static_cast<VertexId>(end_of(w)));
      sums.edges += edges_of(w);
      for (const std::int32_t uses : window.use_counts()) {
        if (uses >= min_uses) sums = sums + Sums{0, 1, uses};
      }
    }
    return sums;
  };
  const auto [edges, columns, dense_edges] =
      parallel_reduce(taken_windows, grain, Sums{}, look_at, std::plus<>());
  if (edges == 0) return {};
  const double share = static_cast<double>(columns) / static_cast<double>(edges);
  EdgeOffset longest = 0;
  for (std::int64_t w = 0; w < windows; ++w) longest = std::max(longest, edges_of(w));
  const auto all_edges = static_cast<double>(rows.indices.size());
  const double rest = static_cast<double>(edges - dense_edges) / static_cast<double>(edges);
  return {share * all_edges, rest * all_edges,
          std::min(static_cast<double>(rows.num_cols), share * static_cast<double>(longest))};
}

}  // namespace

WindowSample sample_windows(const Graph& graph, int height, Side side, int min_uses) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<WindowSample>(taken(rows_of(graph, side), height, min_uses));
  };
  const std::string key = "sample of " + std::to_string(height) + " " +
                          std::string(to_string(side)) + " rows, " + std::to_string(min_uses) +
                          " uses";
  return *std::static_pointer_cast<const WindowSample>(
      detail::GraphAccess::derived(graph, key, make));
}

}  // namespace tessera::tiles
