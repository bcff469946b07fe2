// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "graph/block_refiner.hpp"
#include "graph/partition_methods.hpp"

namespace tessera::detail {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Gives every empty part one vertex: those that have fewest neighbours in their own parts.
void fill_empty(const Graph& graph, std::vector<VertexId>& sizes, Assignment& assignment) {
  std::vector<std::pair<EdgeOffset, VertexId>> candidates;
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    if (sizes[at(assignment[at(v)])] < 2) continue;
    EdgeOffset inside = 0;
    for (const VertexId u : graph.neighbours(v)) {
      inside += assignment[at(u)] == assignment[at(v)] ? 1 : 0;
    }
    candidates.emplace_back(inside, v);
  }
  std::sort(candidates.begin(), candidates.end());
  auto next = candidates.begin();
  for (std::int32_t part = 0; part < static_cast<std::int32_t>(sizes.size()); ++part) {
    if (sizes[at(part)] > 0) continue;
    while (sizes[at(assignment[at(next->second)])] < 2) ++next;
    std::int32_t& part_of = assignment[at(next++->second)];
    --sizes[at(std::exchange(part_of, part))];
    ++sizes[at(part)];
  }
}

}  // namespace

void repair(const PartitionTask& task, Assignment& assignment) {
  const auto sizes_now = [&] {
    std::vector<VertexId> sizes(at(task.parts));
    for (const std::int32_t part : assignment) ++sizes[at(part)];
    return sizes;
  };
  std::vector<VertexId> sizes = sizes_now();
  if (*std::max_element(sizes.begin(), sizes.end()) > task.largest) {
    const std::vector<std::int64_t> limits(sizes.size(), task.largest);
    refine(WeightedGraph(task.graph), limits, assignment, {});
    sizes = sizes_now();
  }
  if (*std::min_element(sizes.begin(), sizes.end()) == 0) {
    fill_empty(task.graph, sizes, assignment);
  }
}

}  // namespace tessera::detail
