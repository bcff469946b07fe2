// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"
#include "reorder/nm/open_groups.hpp"
#include "reorder/nm/row_groups.hpp"

namespace tessera::reorder::detail {

/// The part of its steps that a search spends on placing columns before it repairs.
inline constexpr double usual_placing_part = 0.125;

/// An order for V = 1. Only the columns matter then: they are put into groups of M so that no row
/// has more than two of a group. First come the columns of long rows, then the others in their
/// order; each goes to the nearest group that fits. What fits nowhere goes to where there is room,
/// and `GroupRepair` fixes it.
class Grouping {
 public:
  /// The rows of every column, and the columns of every row: of a whole undirected graph these are
  /// the same.
  Grouping(const Adjacency& rows_of, const Adjacency& columns_of, int group_size,
           std::uint64_t seed);

  /// Puts every column into a group. False if some violate. Where long rows are nearly full,
  /// columns that fit nowhere near take most of the steps: `placing_part` is what may be spent on
  /// them before they are left to a repair.
  bool place(Budget& budget, double placing_part = 1);
  /// Places the columns and fixes what violates. False if violations remain.
  bool run(Budget& budget, double placing_part = 1);
  /// The vertices, group by group.
  std::vector<VertexId> order() const;
  std::int64_t swaps() const { return swaps_; }

 private:
  static constexpr int most_per_row = 2;
  static constexpr std::int32_t nowhere = -1;

  std::vector<VertexId> placing_order();
  void fill_groups_of_overlong_row();
  void place_all(Budget& budget, double placing_part);
  /// Nowhere also where the budget ends before a group is found.
  std::int32_t nearest_fit(VertexId column, std::int32_t home, Budget& budget);

  /// How many rows come before the first that would have too many, the one left out aside: all of
  /// them where the column fits.
  std::int64_t rows_that_fit(VertexId column, std::int32_t group, VertexId but_for_row = -1) const;
  void put(VertexId column, std::int32_t group);
  void append(VertexId column, std::int32_t group);
  /// Without counting its rows.
  void seat(VertexId column, std::int32_t group);

  std::size_t first_slot(std::int32_t group) const;
  int size_of(std::int32_t group) const;

  const Adjacency& rows_of_;
  const Adjacency& columns_of_;
  const int group_size_;
  const std::int32_t num_groups_;
  RowGroups rows_;
  OpenGroups open_;
  const std::uint64_t seed_;
  std::vector<std::int32_t> group_of_;    // per column
  std::vector<VertexId> members_;         // group_size_ slots per group
  std::vector<std::int32_t> filled_;      // per group
  std::vector<VertexId> longest_row_;     // per column
  std::vector<std::int32_t> next_group_;  // per row: where the next column of a long row begins
  std::vector<VertexId> left_over_;
  std::int64_t violations_ = 0;
  std::int64_t swaps_ = 0;
};

}  // namespace tessera::reorder::detail
