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
  std::int64_t num_rows = 0;
  EdgeOffset num_edges = 0;

  EdgeOffset longest() const noexcept { return counts.empty() ? 0 : counts.back().degree; }
  /// 0 where there are no rows.
  double mean() const noexcept;
  /// Rows of more than `degree` edges.
  std::int64_t rows_beyond(EdgeOffset degree) const noexcept;
};

/// Of rows that begin and end at these offsets.
DegreeStatistics degree_statistics(std::span<const EdgeOffset> offsets);

/// Counted at the first call, then kept with the graph.
std::shared_ptr<const DegreeStatistics> row_degrees(const Graph& graph);
std::shared_ptr<const DegreeStatistics> column_degrees(const Graph& graph);

}  // namespace tessera
