// SPDX-License-Identifier: Apache-2.0
#include "locality.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tessera/core/parallel.hpp"

namespace tessera::app {
namespace {

struct Sums {
  VertexId bandwidth = 0;
  std::int64_t gaps = 0;
  std::int64_t distinct_columns = 0;
};

Sums combined(Sums a, const Sums& b) {
  a.bandwidth = std::max(a.bandwidth, b.bandwidth);
  a.gaps += b.gaps;
  a.distinct_columns += b.distinct_columns;
  return a;
}

void add_window(const Graph& graph, VertexId first, VertexId last, std::vector<VertexId>& columns,
                Sums& sums) {
  columns.clear();
  for (VertexId row = first; row < last; ++row) {
    for (const VertexId col : graph.neighbours(row)) {
      const VertexId gap = std::abs(row - col);
      sums.bandwidth = std::max(sums.bandwidth, gap);
      sums.gaps += gap;
      columns.push_back(col);
    }
  }
  std::sort(columns.begin(), columns.end());
  sums.distinct_columns += std::unique(columns.begin(), columns.end()) - columns.begin();
}

}  // namespace

Locality measure_locality(const Graph& graph) {
  constexpr std::int64_t windows_per_range = 256;
  constexpr std::int64_t rows_per_window = Locality::window_rows;
  const std::int64_t rows = graph.num_rows();
  const std::int64_t windows = (rows + rows_per_window - 1) / rows_per_window;
  const Sums sums = parallel_reduce(
      windows, windows_per_range, Sums{},
      [&](std::int64_t begin, std::int64_t end) {
        Sums part;
        std::vector<VertexId> columns;
        for (std::int64_t window = begin; window < end; ++window) {
          const std::int64_t last = std::min(rows, (window + 1) * rows_per_window);
          add_window(graph, static_cast<VertexId>(window * rows_per_window),
                     static_cast<VertexId>(last), columns, part);
        }
        return part;
      },
      combined);
  const auto edges = static_cast<double>(graph.num_edges());
  Locality locality;
  locality.bandwidth = sums.bandwidth;
  if (edges > 0) {
    locality.mean_gap = static_cast<double>(sums.gaps) / edges;
    locality.window_reuse = edges / static_cast<double>(sums.distinct_columns);
  }
  return locality;
}

}  // namespace tessera::app
