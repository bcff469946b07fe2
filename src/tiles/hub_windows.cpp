// SPDX-License-Identifier: Apache-2.0
#include "tiles/hub_windows.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "graph/access.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::tiles {
namespace {

constexpr const char* key = "sampled windows of hubs";

class Rows {
 public:
  explicit Rows(const Graph& graph)
      : offsets_(graph.row_offsets().span()), columns_(graph.col_indices().span()) {}

  EdgeOffset degree(VertexId row) const {
    return offsets_[static_cast<std::size_t>(row) + 1] - offsets_[static_cast<std::size_t>(row)];
  }
  std::span<const VertexId> columns(VertexId row) const {
    return columns_.subspan(static_cast<std::size_t>(offsets_[static_cast<std::size_t>(row)]),
                            static_cast<std::size_t>(degree(row)));
  }
  VertexId hub_of(VertexId row) const {
    VertexId hub = row;
    if (degree(row) > longest_hub_row) return hub;
    for (const VertexId column : columns(row)) {
      const EdgeOffset more = degree(column) - degree(hub);
      if (more > 0 || (more == 0 && column < hub)) hub = column;
    }
    return hub;
  }

 private:
  std::span<const EdgeOffset> offsets_;
  std::span<const VertexId> columns_;
};

/// The number-th of all windows that are looked at, at the hub of a row.
HubWindow window_of(const Rows& rows, VertexId row, EdgeOffset number,
                    std::vector<VertexId>& asked) {
  const VertexId hub = rows.hub_of(row);
  const EdgeOffset step = std::max<EdgeOffset>(1, rows.degree(hub) / sampled_hub_columns);
  asked.clear();
  for (EdgeOffset k = 0; k < sampled_hub_columns; ++k) {
    const EdgeOffset at = number % step + k * step;
    if (at >= rows.degree(hub)) break;
    const VertexId beside = rows.columns(hub)[static_cast<std::size_t>(at)];
    if (rows.degree(beside) > longest_hub_row || rows.hub_of(beside) != hub) continue;
    for (const VertexId column : rows.columns(beside)) asked.push_back(column % hub_column_places);
  }
  const auto edges = static_cast<std::int32_t>(asked.size());
  std::sort(asked.begin(), asked.end());
  const auto last = std::unique(asked.begin(), asked.end());
  return {edges, static_cast<std::int32_t>(last - asked.begin())};
}

std::vector<HubWindow> windows_of(const Graph& graph) {
  std::vector<HubWindow> windows(graph.num_edges() == 0 ? 0 : sampled_hubs);
  const Rows rows(graph);
  const auto count = static_cast<std::int64_t>(windows.size());
  parallel_ranges(count, 8, [&](std::int64_t begin, std::int64_t end) {
    std::vector<VertexId> asked;
    for (std::int64_t i = begin; i < end; ++i) {
      const EdgeOffset edge = graph.num_edges() * i / count;
      const VertexId row = graph.col_indices()[static_cast<std::size_t>(edge)];
      windows[static_cast<std::size_t>(i)] = window_of(rows, row, i, asked);
    }
  });
  return windows;
}

}  // namespace

std::shared_ptr<const std::vector<HubWindow>> sampled_hub_windows(const Graph& graph) {
  return detail::GraphAccess::kept(graph, key, [&] { return windows_of(graph); });
}

void know_hub_windows(const Graph& graph, std::vector<HubWindow> windows) {
  detail::GraphAccess::know(graph, key,
                            std::make_shared<std::vector<HubWindow>>(std::move(windows)));
}

}  // namespace tessera::tiles
