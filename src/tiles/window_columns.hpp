// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
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
};

SideRows rows_of(const Graph& graph, Side side);

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
