// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"
#include "tessera/reorder/nm.hpp"

/// The two stages of SOGRE (PPoPP'25), on the nonzero segment vectors alone.
namespace tessera::reorder::detail {

/// Vertices and where they are: `vertex_at[position_of[v]] == v`.
struct Placement {
  explicit Placement(std::vector<VertexId> vertices);

  std::vector<VertexId> vertex_at;
  std::vector<VertexId> position_of;
};

/// Stage 1, one pass: every segment vector gets the rank of its bits in the Gray code, with a minus
/// where it has more than N of them, and the rows are sorted by these numbers.
Placement sorted_by_codes(const Adjacency& adjacency, const Placement& placement,
                          const NmPattern& pattern);

/// Stage 2, one pass: the worst segment swaps vertices with the next worst ones, the best pair with
/// each, no vertex twice; all swaps are made at the end. False if there was none to make.
bool swap_between_segments(const Adjacency& adjacency, Placement& placement,
                           const NmPattern& pattern, Budget& budget);

struct PaperResult {
  std::vector<VertexId> order;
  std::int64_t passes = 0;
};
PaperResult order_as_paper(const Graph& graph, const NmPattern& pattern, Budget& budget);

}  // namespace tessera::reorder::detail
