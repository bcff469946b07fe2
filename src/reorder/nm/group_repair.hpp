// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"
#include "reorder/nm/draws.hpp"
#include "reorder/nm/row_groups.hpp"

namespace tessera::reorder::detail {

/// Fixes groups of columns of which some row has more than two: columns of such groups are swapped
/// with others by simulated annealing. A swap may leave c more violations with probability
/// exp(-c / temperature); how many it may is drawn first, so that a poor one is refused at the
/// first rows that tell. Long rows, which refuse most, are bits: for every column, and for every
/// group those that have two and three of it. Short rows are counted in tables. Memory follows the
/// edges.
class GroupRepair {
 public:
  /// The members of groups of `group_size` columns, group by group; the last may be smaller.
  GroupRepair(const Adjacency& rows_of, const Adjacency& columns_of, int group_size,
              std::vector<VertexId> members, std::uint64_t seed);

  /// Swaps that hardly ever leave more violations, with a small part of the steps: most groups have
  /// few violations, which need no more. False if some remain.
  bool fix_few(Budget& budget);
  /// All of the steps that are left. False if violations remain.
  bool fix_many(Budget& budget);
  std::int64_t fewest_violations() const { return best_; }
  /// With the fewest violations found.
  std::vector<VertexId> members_at_best() const;
  std::int64_t swaps() const { return swaps_; }

 private:
  using Word = std::uint64_t;
  static constexpr int most_per_row = 2;

  void collect_rows(const Adjacency& rows_of, const Adjacency& columns_of);
  bool anneal(double hot, double cold, std::int64_t steps, Budget& budget);
  /// Returns the steps that it took. The chance is that of one violation more.
  std::int64_t try_swap(double chance_of_one);
  /// A column to swap with: any, or one that takes a violation away.
  VertexId partner_of(VertexId column);
  bool is_allowed(VertexId a, VertexId b, std::int64_t allowed);
  void swap_columns(VertexId a, VertexId b);
  void enter(VertexId column, std::int32_t group);
  void leave(VertexId column, std::int32_t group);
  /// After the members of a group have changed.
  void refresh(std::int32_t group);
  /// After a swap of these slots.
  void keep_best(std::int32_t slot_a, std::int32_t slot_b);

  /// The violations that the column takes part in.
  std::int64_t violations_at(VertexId column);
  /// Those that it would add, were `without` not there.
  std::int64_t added_violations(VertexId column, std::int32_t group, VertexId without,
                                std::int64_t most);

  std::int32_t group_of(VertexId column) const { return slot_of_[at(column)] / group_size_; }
  std::span<const VertexId> members_of(std::int32_t group) const;
  std::span<const VertexId> short_rows(VertexId column) const;
  const Word* bits_of(VertexId column) const { return bits_.data() + at(column) * words_; }

  const VertexId num_columns_;
  const int group_size_;
  const std::int32_t num_groups_;
  const double density_;    // entries of all rows and columns
  std::size_t words_ = 0;   // of the long rows
  std::vector<Word> bits_;  // per column: the long rows that use it, longest first
  std::vector<Word> twos_;  // per group: long rows that have two of it, or more
  std::vector<Word> threes_;
  std::vector<EdgeOffset> short_offsets_ = {0};
  std::vector<VertexId> short_rows_;
  RowGroups counts_;  // of short rows
  std::vector<VertexId> members_;
  std::vector<std::int32_t> slot_of_;           // per column
  std::vector<std::int64_t> short_violations_;  // per group, of short rows
  std::vector<std::int64_t> violations_of_;     // per group, of all rows
  std::vector<std::int32_t> bad_;               // groups with violations
  std::vector<std::int32_t> place_in_bad_;      // per group
  std::vector<VertexId> user_;                  // per row: the last column whose rows were marked
  std::int64_t steps_ = 0;                      // of the swap that is tried
  std::int64_t unavoidable_ = 0;                // violations of rows that are too long
  std::int64_t violations_ = 0;
  std::int64_t best_ = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> since_best_;  // slots that were swapped
  std::vector<VertexId> best_members_;                             // in place of many such swaps
  std::int64_t swaps_ = 0;
  Draws draws_;
};

}  // namespace tessera::reorder::detail
