// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/layout.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera::reorder {
namespace {

/// Of the row windows [begin, end).
std::int64_t distinct_columns(const Graph& graph, const Permutation& order, std::int64_t begin,
                              std::int64_t end) {
  std::int64_t distinct = 0;
  std::vector<VertexId> columns;
  for (std::int64_t window = begin; window < end; ++window) {
    columns.clear();
    const std::int64_t last = std::min<std::int64_t>(graph.num_rows(), (window + 1) * row_window);
    for (std::int64_t row = window * row_window; row < last; ++row) {
      const auto neighbours = graph.neighbours(order.new_to_old()[row]);
      columns.insert(columns.end(), neighbours.begin(), neighbours.end());
    }
    std::sort(columns.begin(), columns.end());
    distinct += std::unique(columns.begin(), columns.end()) - columns.begin();
  }
  return distinct;
}

}  // namespace

double computing_intensity(const Graph& graph, const Permutation& order) {
  constexpr std::int64_t windows_per_range = 256;
  tessera::detail::require_square(graph, "reordering");
  const std::int64_t windows = (graph.num_rows() + row_window - 1) / row_window;
  const std::int64_t columns = parallel_reduce(
      windows, windows_per_range, std::int64_t{0},
      [&](std::int64_t begin, std::int64_t end) {
        return distinct_columns(graph, order, begin, end);
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
  best.intensity_before = best.intensity_after = computing_intensity(graph, best.order);
  const auto offer = [&](const char* method, const Permutation& order) {
    const double intensity = computing_intensity(graph, order);
    if (intensity <= best.intensity_after) return;
    best.order = order;
    best.method = method;
    best.intensity_after = intensity;
  };
  offer("loa", loa(graph, options));
  const Permutation together = communities(graph, options.progress);
  offer("communities", together);
  offer("communities, loa", together.then(loa(permuted(graph, together), options)));
  return best;
}

}  // namespace tessera::reorder
