// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/paper.hpp"

#include <numeric>
#include <utility>

namespace tessera::reorder::detail {
namespace {

/// The paper's limit for each of its loops.
constexpr int most_passes = 10;

NmViolations violations_of(const Graph& graph, const Placement& placement,
                           const NmPattern& pattern) {
  return count_violations(permuted(graph, Permutation(placement.vertex_at)), pattern);
}

}  // namespace

Placement::Placement(std::vector<VertexId> vertices)
    : vertex_at(std::move(vertices)), position_of(vertex_at.size()) {
  for (std::size_t i = 0; i < vertex_at.size(); ++i) {
    position_of[at(vertex_at[i])] = static_cast<VertexId>(i);
  }
}

PaperResult order_as_paper(const Graph& graph, const NmPattern& pattern, Budget& budget) {
  const Adjacency adjacency(graph);
  std::vector<VertexId> vertices(at(adjacency.size));
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  Placement placement(std::move(vertices));
  PaperResult best{placement.vertex_at, 0};
  NmViolations fewest = violations_of(graph, placement, pattern);
  std::int64_t passes = 0;
  const auto assess = [&] {
    ++passes;
    const NmViolations now = violations_of(graph, placement, pattern);
    const auto rank = [](const NmViolations& v) { return std::pair{v.meta_blocks, v.vectors}; };
    if (rank(now) < rank(fewest)) {
      fewest = now;
      best.order = placement.vertex_at;
    }
    return now;
  };
  const auto may_go_on = [&] { return budget.take(adjacency.num_edges() + adjacency.size); };
  for (int round = 0; round < most_passes && !fewest.conforms() && may_go_on(); ++round) {
    const NmViolations before = fewest;
    NmViolations now = violations_of(graph, placement, pattern);
    for (int pass = 0; pass < most_passes && !now.conforms() && may_go_on(); ++pass) {
      Placement sorted = sorted_by_codes(adjacency, placement, pattern);
      if (sorted.vertex_at == placement.vertex_at) break;
      placement = std::move(sorted);
      now = assess();
    }
    for (int pass = 0; pass < most_passes && now.vectors > 0 && may_go_on(); ++pass) {
      if (!swap_between_segments(adjacency, placement, pattern, budget)) break;
      now = assess();
    }
    if (fewest == before) break;
  }
  best.passes = passes;
  return best;
}

}  // namespace tessera::reorder::detail
