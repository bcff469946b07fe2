// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera {

/// How many rows have a degree.
struct DegreeCount {
  EdgeOffset degree = 0;
  std::int64_t rows = 0;
};

/// What schedules and cost models ask of the degrees of rows, or of columns.
struct DegreeStatistics {
  std::vector<DegreeCount> counts;  ///< every degree that occurs, in rising order
  /// The degree of each row, or `highest_of_row` where it is higher: eight at once can be compared.
  std::vector<std::int16_t> of_rows;
  std::int64_t num_rows = 0;
  EdgeOffset num_edges = 0;

  static constexpr EdgeOffset highest_of_row = INT16_MAX;

  EdgeOffset longest() const noexcept { return counts.empty() ? 0 : counts.back().degree; }
  /// 0 where there are no rows.
  double mean() const noexcept;
  /// Rows of more than `degree` edges.
  std::int64_t rows_beyond(EdgeOffset degree) const noexcept;
  /// The same of the rows from `begin` to `end`; the degree is below `highest_of_row`.
  std::int32_t rows_beyond(EdgeOffset degree, std::int64_t begin, std::int64_t end) const noexcept;
};

/// For rows that begin and end at these offsets.
DegreeStatistics degree_statistics(std::span<const EdgeOffset> offsets);

/// Counted at the first call, then kept with the graph.
std::shared_ptr<const DegreeStatistics> row_degrees(const Graph& graph);
std::shared_ptr<const DegreeStatistics> column_degrees(const Graph& graph);

}  // namespace tessera
