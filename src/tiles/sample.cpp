// SPDX-License-Identifier: Apache-2.0
#include "tiles/sample.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/access.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

std::string key_of(const char* what, const SampledWindows& windows, Side side) {
  return fmt::format("{} windows of {} {} rows, {} uses", what, windows.height, to_string(side),
                     windows.min_uses);
}

WindowSums taken(const SideRows& rows, int height, int min_uses) {
  constexpr std::int64_t grain = 8;
  const std::int64_t windows = rows.num_windows(height);
  const std::int64_t taken_windows = std::min(windows, most_sampled);
  const auto window_of = [&](std::int64_t i) { return windows * i / taken_windows; };
  const auto look_at = [&](std::int64_t begin, std::int64_t end) {
    WindowColumns window;
    WindowSums sums;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [first_row, end_row] = rows.window(window_of(i), height);
      window.count(rows, first_row, end_row);
      WindowSums found{rows.num_edges(first_row, end_row), 0, 0};
      for (const std::int32_t uses : window.use_counts()) {
        if (uses >= min_uses) found = found + WindowSums{0, 1, uses};
      }
      const VertexId next_row = rows.window(window_of(i + 1), height).first;
      sums = sums + found.for_windows(window_of(i + 1) - window_of(i),
                                      rows.num_edges(first_row, next_row));
    }
    return sums;
  };
  return parallel_reduce(taken_windows, grain, WindowSums{}, look_at, std::plus<>());
}

std::string columns_key_of(Side side) {
  return "sampled columns of " + std::string(to_string(side)) + " windows";
}

std::vector<std::int32_t> columns_taken(const SideRows& rows) {
  constexpr int height = chosen_windows.height;
  const std::int64_t windows = rows.num_windows(height);
  std::vector<std::int32_t> columns(static_cast<std::size_t>(std::min(windows, most_sampled)));
  const auto count = static_cast<std::int64_t>(columns.size());
  parallel_ranges(count, 8, [&](std::int64_t begin, std::int64_t end) {
    WindowColumns window;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [first_row, end_row] = rows.window(windows * i / count, height);
      window.count(rows, first_row, end_row);
      columns[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(window.use_counts().size());
    }
  });
  return columns;
}

}  // namespace

WindowSample estimate(const WindowSums& sums, std::span<const EdgeOffset> offsets,
                      VertexId num_cols, int height) {
  if (offsets.empty() || offsets.back() == 0) return {};
  // Where all edges are in other windows, each of them may have a column of its own.
  const bool unseen = sums.edges == 0;
  const double edges = unseen ? 1 : static_cast<double>(sums.edges);
  const double share = unseen ? 1 : static_cast<double>(sums.columns) / edges;
  const auto step = static_cast<std::size_t>(height);
  EdgeOffset longest = 0;
  for (std::size_t row = 0; row + 1 < offsets.size(); row += step) {
    const std::size_t end = std::min(row + step, offsets.size() - 1);
    longest = std::max(longest, offsets[end] - offsets[row]);
  }
  const auto all_edges = static_cast<double>(offsets.back());
  const double rest = static_cast<double>(sums.edges - sums.dense_edges) / edges;
  return {share * all_edges, rest * all_edges,
          std::min(static_cast<double>(num_cols), share * static_cast<double>(longest))};
}

void know_sample(const Graph& graph, const SampledWindows& windows, Side side,
                 const WindowSample& sample) {
  detail::GraphAccess::know(graph, key_of("sample of", windows, side),
                            std::make_shared<WindowSample>(sample));
}

std::shared_ptr<const std::vector<std::int32_t>> sampled_columns(const Graph& graph, Side side) {
  return detail::GraphAccess::kept(graph, columns_key_of(side),
                                   [&] { return columns_taken(rows_of(graph, side)); });
}

void know_sampled_columns(const Graph& graph, Side side, std::vector<std::int32_t> columns) {
  detail::GraphAccess::know(graph, columns_key_of(side),
                            std::make_shared<std::vector<std::int32_t>>(std::move(columns)));
}

void know_window_counts(const Graph& graph, const SampledWindows& windows, Side side,
                        WindowCounts counts) {
  detail::GraphAccess::know(graph, key_of("all", windows, side),
                            std::make_shared<WindowCounts>(std::move(counts)));
}

std::shared_ptr<const WindowCounts> known_window_counts(const Graph& graph,
                                                        const SampledWindows& windows, Side side) {
  return std::static_pointer_cast<const WindowCounts>(
      detail::GraphAccess::known(graph, key_of("all", windows, side)));
}

WindowSample sample_windows(const Graph& graph, int height, Side side, int min_uses) {
  return *detail::GraphAccess::kept(graph, key_of("sample of", {height, min_uses}, side), [&] {
    const SideRows rows = rows_of(graph, side);
    return estimate(taken(rows, height, min_uses), rows.offsets, rows.num_cols, height);
  });
}

}  // namespace tessera::tiles
