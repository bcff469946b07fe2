// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/column_part.hpp"

#include <algorithm>

namespace tessera::reorder::detail {
namespace {

/// A row with so many entries in a part can violate; others need not be looked at.
constexpr EdgeOffset entries_that_matter = 3;

}  // namespace

ColumnPart::ColumnPart(const Adjacency& adjacency, std::span<const VertexId> columns) {
  std::vector<VertexId> entries;
  for (const VertexId column : columns) {
    const auto rows = adjacency.neighbours(column);
    entries.insert(entries.end(), rows.begin(), rows.end());
  }
  std::sort(entries.begin(), entries.end());
  for (std::size_t first = 0, last = 0; first < entries.size(); first = last) {
    while (last < entries.size() && entries[last] == entries[first]) ++last;
    const auto count = static_cast<EdgeOffset>(last - first);
    if (count < entries_that_matter) continue;
    rows_.push_back(entries[first]);
    row_offsets_.push_back(row_offsets_.back() + count);
  }
  std::vector<EdgeOffset> next(row_offsets_.begin(), row_offsets_.end() - 1);
  columns_.resize(at(row_offsets_.back()));
  VertexId number_of_column = 0;
  for (const VertexId column : columns) {
    for (const VertexId row : adjacency.neighbours(column)) {
      const auto found = std::lower_bound(rows_.begin(), rows_.end(), row);
      if (found == rows_.end() || *found != row) continue;
      const auto number = static_cast<VertexId>(found - rows_.begin());
      rows_of_columns_.push_back(number);
      columns_[at(next[at(number)]++)] = number_of_column;
    }
    column_offsets_.push_back(static_cast<EdgeOffset>(rows_of_columns_.size()));
    ++number_of_column;
  }
}

}  // namespace tessera::reorder::detail
