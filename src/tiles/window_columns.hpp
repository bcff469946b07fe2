// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// The rows of one side of a graph.
struct SideRows {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  std::span<const EdgeOffset> offsets;
  std::span<const VertexId> indices;

  std::int64_t num_windows(int height) const {
    return (std::int64_t{num_rows} + height - 1) / height;
  }
  /// The first row of a window, and the one behind its last.
  std::pair<VertexId, VertexId> window(std::int64_t number, int height) const {
    return {static_cast<VertexId>(std::min<std::int64_t>(num_rows, number * height)),
            static_cast<VertexId>(std::min<std::int64_t>(num_rows, (number + 1) * height))};
  }
  EdgeOffset num_edges(VertexId first_row, VertexId last_row) const {
    return offsets[static_cast<std::size_t>(last_row)] -
           offsets[static_cast<std::size_t>(first_row)];
  }
  /// The number of a row's first edge that is not left of a column.
  EdgeOffset first_edge_from(std::int64_t row, VertexId column) const {
    const auto begin = indices.begin() + offsets[static_cast<std::size_t>(row)];
    const auto end = indices.begin() + offsets[static_cast<std::size_t>(row) + 1];
    return std::lower_bound(begin, end, column) - indices.begin();
  }
};

SideRows rows_of(const Graph& graph, Side side);

/// Where edges of a side stand in CSR.
class EdgePositions {
 public:
  EdgePositions(const Graph& graph, Side side) : rows_(rows_of(graph, side)) {
    if (side == Side::transposed) positions_ = graph.csc().csr_positions;
  }

  std::int32_t operator()(std::int64_t row, VertexId column) const {
    const EdgeOffset edge = rows_.first_edge_from(row, column);
    return static_cast<std::int32_t>(positions_.empty() ? edge : positions_[edge]);
  }

 private:
  SideRows rows_;
  SharedArray<EdgeOffset> positions_;
};

/// Throws `invalid_argument` unless windows may have this height.
void check_height(int height);

/// Throws `invalid_argument` unless it is 1 or more.
void check_min_uses(int min_uses);

/// The distinct columns of a window of rows. Reused from window to window, so that its memory grows
/// to the largest and stays: a small hash table, not an array over all columns.
class WindowColumns {
 public:
  void collect(const SideRows& rows, VertexId first_row, VertexId last_row);

  /// Half the way, for who wants to know no more than how many rows use each column. Nothing but
  /// `use_counts` holds then.
  void count(const SideRows& rows, VertexId first_row, VertexId last_row);
  /// One for every distinct column, in no order.
  std::span<const std::int32_t> use_counts() const { return use_counts_; }

  /// Leaves out columns that fewer rows use.
  void keep_used(int min_uses);

  /// Sorted.
  std::span<const VertexId> columns() const { return columns_; }
  /// The place in `columns()` of the column of the window's k-th edge; -1 where it was left out.
  std::int32_t place_of_edge(std::size_t k) const {
    return places_[static_cast<std::size_t>(edge_numbers_[k])];
  }
  /// How many edges use the column at a place.
  std::span<const std::int32_t> uses() const { return uses_; }

 private:
  struct Slot {
    VertexId column;
    std::int32_t number;
  };
  std::int32_t number_of(VertexId column);
  void sort();

  std::vector<Slot> table_;
  std::size_t mask_ = 0;
  std::vector<Slot> found_;                 ///< numbered as they come, then sorted by column
  std::vector<std::int32_t> edge_numbers_;  ///< of each edge's column, in the order of the rows
  std::vector<std::int32_t> use_counts_;    ///< by number
  std::vector<std::int32_t> places_;        ///< by number
  std::vector<VertexId> columns_;
  std::vector<std::int32_t> uses_;
};

}  // namespace tessera::tiles
