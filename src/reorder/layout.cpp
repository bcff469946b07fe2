// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/layout.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/reorder/orders.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera::reorder {
namespace {

/// Of the windows [begin, end) of so many rows.
std::int64_t distinct_columns(const Graph& graph, const Permutation& order, int rows,
                              std::int64_t begin, std::int64_t end) {
  std::int64_t distinct = 0;
  std::vector<VertexId> columns;
  for (std::int64_t window = begin; window < end; ++window) {
    columns.clear();
    const std::int64_t last = std::min<std::int64_t>(graph.num_rows(), (window + 1) * rows);
    for (std::int64_t row = window * rows; row < last; ++row) {
      const auto neighbours = graph.neighbours(order.new_to_old()[row]);
      columns.insert(columns.end(), neighbours.begin(), neighbours.end());
    }
    std::sort(columns.begin(), columns.end());
    distinct += std::unique(columns.begin(), columns.end()) - columns.begin();
  }
  return distinct;
}

}  // namespace

double computing_intensity(const Graph& graph, const Permutation& order, int rows) {
  constexpr std::int64_t rows_per_range = 4096;
  tessera::detail::require_square(graph, "reordering");
  const std::int64_t windows = (std::int64_t{graph.num_rows()} + rows - 1) / rows;
  const std::int64_t columns = parallel_reduce(
      windows, std::max<std::int64_t>(1, rows_per_range / rows), std::int64_t{0},
      [&](std::int64_t begin, std::int64_t end) {
        return distinct_columns(graph, order, rows, begin, end);
      },
      [](std::int64_t a, std::int64_t b) { return a + b; });
  return columns == 0 ? 0 : static_cast<double>(graph.num_edges()) / static_cast<double>(columns);
}

Layout best_layout(const Graph& given, const LoaOptions& options) {
  tessera::detail::require_square(given, "reordering");
  const Graph graph = tessera::detail::undirected(given);
  Layout best;
  best.order = Permutation::identity(graph.num_rows());
  best.method = "none";
  best.intensity_before = best.intensity_after =
      computing_intensity(graph, best.order, layout_window);
  const auto offer = [&](std::string method, const Permutation& order) {
    const double intensity = computing_intensity(graph, order, layout_window);
    if (intensity <= best.intensity_after) return;
    best.order = order;
    best.method = std::move(method);
    best.intensity_after = intensity;
  };
  offer("loa", loa(graph, options));
  const Permutation together = communities(graph, options.progress);
  offer("communities", together);
  offer("rcm", rcm(graph));
  offer("communities, loa", together.then(loa(permuted(graph, together), options)));
  const Permutation first = best.order;
  offer(best.method == "none" ? "bisection" : best.method + ", bisection",
        first.then(bisection(permuted(graph, first), options.progress)));
  return best;
}

}  // namespace tessera::reorder
