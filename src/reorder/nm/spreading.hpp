// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"
#include "reorder/nm/count_table.hpp"
#include "reorder/nm/draws.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder::detail {

/// An order for V > 1. Entries are spread over the meta-blocks: vertices begin in random places and
/// swap while that lowers the number of violations. Half of the swaps begin at an entry that
/// violates; a swap that makes things worse is taken now and then, ever more rarely.
class Spreading {
 public:
  Spreading(const Adjacency& adjacency, const NmPattern& pattern, std::vector<VertexId> order,
            std::uint64_t seed);

  /// False if violations remain; the order is then the best that was found.
  bool run(Budget& budget);
  const std::vector<VertexId>& order() const { return vertex_at_; }
  std::int64_t swaps() const { return swaps_; }

 private:
  std::int64_t block_of(VertexId row) const;
  std::int64_t group_of(VertexId column) const;
  bool violates(VertexId row, VertexId column) const;
  void enter(VertexId row, VertexId column);
  void leave(VertexId row, VertexId column);
  template <class Visit>
  void for_each_entry(VertexId a, VertexId b, Visit&& visit) const;
  void swap(VertexId a, VertexId b);
  VertexId draw_suspect();
  void note_swap(VertexId a, VertexId b);

  const Adjacency& adjacency_;
  const NmPattern pattern_;
  Draws draws_;
  std::vector<VertexId> vertex_at_;
  std::vector<VertexId> position_of_;
  CountTable in_row_;     // entries of a row in a group of columns
  CountTable in_column_;  // entries of a column in a block of rows
  CountTable live_;       // columns of a group with entries in a block of rows
  std::vector<std::pair<VertexId, VertexId>> suspects_;  // entries, perhaps fixed by now
  std::vector<std::pair<VertexId, VertexId>> since_best_;
  std::int64_t violations_ = 0;
  std::int64_t best_violations_ = 0;
  std::int64_t swaps_ = 0;
};

}  // namespace tessera::reorder::detail
