// SPDX-License-Identifier: Apache-2.0
#include "graph/degrees.hpp"

#include <algorithm>

#include "graph/access.hpp"

namespace tessera {
namespace {

/// Lower degrees, which nearly all rows have, are counted in an array; higher ones are sorted.
constexpr EdgeOffset counted_degrees = 1024;

template <class Offsets>
std::shared_ptr<const DegreeStatistics> kept(const Graph& graph, const char* key,
                                             Offsets&& offsets) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<DegreeStatistics>(degree_statistics(offsets().span()));
  };
  return std::static_pointer_cast<const DegreeStatistics>(
      detail::GraphAccess::derived(graph, key, make));
}

}  // namespace

double DegreeStatistics::mean() const noexcept {
  return num_rows > 0 ? static_cast<double>(num_edges) / static_cast<double>(num_rows) : 0;
}

std::int64_t DegreeStatistics::rows_beyond(EdgeOffset degree) const noexcept {
  std::int64_t rows = 0;
  for (auto count = counts.rbegin(); count != counts.rend() && count->degree > degree; ++count) {
    rows += count->rows;
  }
  return rows;
}

DegreeStatistics degree_statistics(std::span<const EdgeOffset> offsets) {
  DegreeStatistics statistics;
  if (offsets.empty()) return statistics;
  statistics.num_rows = static_cast<std::int64_t>(offsets.size()) - 1;
  statistics.num_edges = offsets.back() - offsets.front();
  std::vector<std::int64_t> low(static_cast<std::size_t>(counted_degrees));
  std::vector<EdgeOffset> high;
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    const EdgeOffset degree = offsets[row + 1] - offsets[row];
    if (degree < counted_degrees) {
      ++low[static_cast<std::size_t>(degree)];
    } else {
      high.push_back(degree);
    }
  }
  for (std::size_t degree = 0; degree < low.size(); ++degree) {
    if (low[degree] == 0) continue;
    statistics.counts.push_back({static_cast<EdgeOffset>(degree), low[degree]});
  }
  std::sort(high.begin(), high.end());
  for (const EdgeOffset degree : high) {
    const bool known = !statistics.counts.empty() && statistics.counts.back().degree == degree;
    if (!known) statistics.counts.push_back({degree, 0});
    ++statistics.counts.back().rows;
  }
  return statistics;
}

std::shared_ptr<const DegreeStatistics> row_degrees(const Graph& graph) {
  return kept(graph, "degrees of rows", [&] { return graph.row_offsets(); });
}

std::shared_ptr<const DegreeStatistics> column_degrees(const Graph& graph) {
  return kept(graph, "degrees of columns", [&] { return detail::GraphAccess::col_offsets(graph); });
}

}  // namespace tessera
