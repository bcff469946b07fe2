// SPDX-License-Identifier: Apache-2.0
#include "graph/degrees.hpp"

#include <algorithm>
#include <array>

#include "graph/access.hpp"

namespace tessera {
namespace {

/// Lower degrees, which nearly all rows have, are counted in an array; higher ones are sorted.
constexpr EdgeOffset counted_degrees = 1024;

std::vector<std::int16_t> degrees_of_rows(std::span<const EdgeOffset> offsets) {
  constexpr std::int32_t highest = DegreeStatistics::highest_of_row;
  std::vector<std::int16_t> degrees(offsets.size() - 1);
  for (std::size_t row = 0; row < degrees.size(); ++row) {
    // A row has less than 2^31 edges, all of other sources.
    const auto degree = static_cast<std::int32_t>(offsets[row + 1] - offsets[row]);
    degrees[row] = static_cast<std::int16_t>(std::min(degree, highest));
  }
  return degrees;
}

/// How many rows have each degree below `counted_degrees`, and how many have another. Neighbours
/// are counted apart: many have the same degree, and would wait for each other.
class LowDegrees {
 public:
  explicit LowDegrees(std::span<const std::int16_t> degrees) {
    std::size_t row = 0;
    for (; row + apart <= degrees.size(); row += apart) {
      for (std::size_t i = 0; i < apart; ++i) count(i, degrees[row + i]);
    }
    for (; row < degrees.size(); ++row) count(0, degrees[row]);
  }

  std::int64_t rows_of(EdgeOffset degree) const {
    std::int64_t rows = 0;
    for (const auto& counts : counts_) rows += counts[static_cast<std::size_t>(degree)];
    return rows;
  }

 private:
  static constexpr std::size_t apart = 4;

  void count(std::size_t which, std::int16_t degree) {
    ++counts_[which][static_cast<std::size_t>(std::min<EdgeOffset>(degree, counted_degrees))];
  }

  std::array<std::array<std::int32_t, counted_degrees + 1>, apart> counts_{};
};

/// The others, of which there are `count`, in rising order.
std::vector<EdgeOffset> high_degrees(std::span<const EdgeOffset> offsets, std::int64_t count) {
  std::vector<EdgeOffset> high;
  if (count == 0) return high;
  high.reserve(static_cast<std::size_t>(count));
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    const EdgeOffset degree = offsets[row + 1] - offsets[row];
    if (degree >= counted_degrees) high.push_back(degree);
  }
  std::sort(high.begin(), high.end());
  return high;
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

std::int32_t DegreeStatistics::rows_beyond(EdgeOffset degree, std::int64_t begin,
                                           std::int64_t end) const noexcept {
  const auto limit = static_cast<std::int16_t>(std::min(degree, highest_of_row));
  std::int32_t rows = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    rows += of_rows[static_cast<std::size_t>(row)] > limit ? 1 : 0;
  }
  return rows;
}

DegreeStatistics degree_statistics(std::span<const EdgeOffset> offsets) {
  DegreeStatistics statistics;
  if (offsets.empty()) return statistics;
  statistics.num_rows = static_cast<std::int64_t>(offsets.size()) - 1;
  statistics.num_edges = offsets.back() - offsets.front();
  statistics.of_rows = degrees_of_rows(offsets);
  const LowDegrees low(statistics.of_rows);
  for (EdgeOffset degree = 0; degree < counted_degrees; ++degree) {
    const std::int64_t rows = low.rows_of(degree);
    if (rows > 0) statistics.counts.push_back({degree, rows});
  }
  for (const EdgeOffset degree : high_degrees(offsets, low.rows_of(counted_degrees))) {
    const bool known = !statistics.counts.empty() && statistics.counts.back().degree == degree;
    if (!known) statistics.counts.push_back({degree, 0});
    ++statistics.counts.back().rows;
  }
  return statistics;
}

std::shared_ptr<const DegreeStatistics> row_degrees(const Graph& graph) {
  return detail::GraphAccess::kept(graph, "degrees of rows",
                                   [&] { return degree_statistics(graph.row_offsets().span()); });
}

std::shared_ptr<const DegreeStatistics> column_degrees(const Graph& graph) {
  const SharedArray<EdgeOffset> offsets = detail::GraphAccess::col_offsets(graph);
  // The same array where the graph is known to be symmetric.
  if (offsets.data() == graph.row_offsets().data()) return row_degrees(graph);
  return detail::GraphAccess::kept(graph, "degrees of columns",
                                   [&] { return degree_statistics(offsets.span()); });
}

}  // namespace tessera
