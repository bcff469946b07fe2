// SPDX-License-Identifier: Apache-2.0
#include "locality.hpp"

#include <algorithm>
#include <cstdlib>

#include "tessera/core/parallel.hpp"
#include "tessera/reorder/layout.hpp"

namespace tessera::app {
namespace {

struct Gaps {
  VertexId largest = 0;
  std::int64_t sum = 0;
};

Gaps combined(const Gaps& a, const Gaps& b) {
  return {std::max(a.largest, b.largest), a.sum + b.sum};
}

Gaps gaps_of(const Graph& graph, std::int64_t begin, std::int64_t end) {
  Gaps gaps;
  for (auto row = static_cast<VertexId>(begin); row < end; ++row) {
    for (const VertexId col : graph.neighbours(row)) {
      const VertexId gap = std::abs(row - col);
      gaps = combined(gaps, {gap, gap});
    }
  }
  return gaps;
}

}  // namespace

Locality measure_locality(const Graph& graph) {
  constexpr std::int64_t rows_per_range = 4096;
  const Gaps gaps = parallel_reduce(
      graph.num_rows(), rows_per_range, Gaps{},
      [&](std::int64_t begin, std::int64_t end) { return gaps_of(graph, begin, end); }, combined);
  Locality locality;
  locality.bandwidth = gaps.largest;
  if (graph.num_edges() > 0) {
    locality.mean_gap = static_cast<double>(gaps.sum) / static_cast<double>(graph.num_edges());
  }
  locality.window_reuse =
      reorder::computing_intensity(graph, Permutation::identity(graph.num_rows()));
  return locality;
}

}  // namespace tessera::app
