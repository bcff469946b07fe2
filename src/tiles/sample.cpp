// SPDX-License-Identifier: Apache-2.0
#include "tiles/sample.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>

#include "tessera/core/parallel.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

WindowSample taken(const SideRows& rows, int height, int min_uses) {
  constexpr std::int64_t most_windows = 128;
  const std::int64_t windows = rows.num_windows(height);
  const auto edges_of = [&](std::int64_t w) {
    const std::int64_t last = std::min<std::int64_t>(rows.num_rows, (w + 1) * height);
    return rows.offsets[static_cast<std::size_t>(last)] -
           rows.offsets[static_cast<std::size_t>(w * height)];
  };
  constexpr std::int64_t grain = 8;
  const std::int64_t taken_windows = std::min(windows, most_windows);
  std::atomic<std::int64_t> edges = 0;
  std::atomic<std::int64_t> columns = 0;
  std::atomic<std::int64_t> dense_edges = 0;
  parallel_ranges(taken_windows, grain, [&](std::int64_t begin, std::int64_t end) {
    WindowColumns window;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t w = windows * i / taken_windows;
      const std::int64_t last = std::min<std::int64_t>(rows.num_rows, (w + 1) * height);
      window.collect(rows, static_cast<VertexId>(w * height), static_cast<VertexId>(last));
      edges += edges_of(w);
      if (min_uses > 1) window.keep_used(min_uses);
      columns += static_cast<std::int64_t>(window.columns().size());
      dense_edges += std::accumulate(window.uses().begin(), window.uses().end(), std::int64_t{0});
    }
  });
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
  return *std::static_pointer_cast<const WindowSample>(graph.derived(key, make));
}

}  // namespace tessera::tiles
