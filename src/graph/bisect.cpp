// SPDX-License-Identifier: Apache-2.0
#include "graph/bisect.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "tessera/core/random.hpp"

#include "graph/block_refiner.hpp"

namespace tessera::detail {
namespace {

std::size_t at(VertexId vertex) { return static_cast<std::size_t>(vertex); }

/// Takes vertices from half 0 into half 1, always one that is tied most strongly to those taken,
/// until half 1 is as heavy as wanted.
std::vector<std::int32_t> grown(const WeightedGraph& graph, std::int64_t wanted,
                                const Random& random) {
  std::vector<std::int32_t> half_of(at(graph.size()), 0);
  std::vector<std::int64_t> gain_of(half_of.size());
  for (VertexId v = 0; v < graph.size(); ++v) {
    graph.for_each_edge(v, [&](VertexId, std::int32_t weight) { gain_of[at(v)] -= weight; });
  }
  // Entries whose gain is not the vertex's any more are passed over.
  std::priority_queue<std::pair<std::int64_t, VertexId>> queue;
  auto start = static_cast<VertexId>(random.below(0, static_cast<std::uint64_t>(graph.size())));
  std::int64_t taken = 0;
  while (taken < wanted) {
    if (queue.empty()) {
      while (half_of[at(start)] == 1) start = (start + 1) % graph.size();
      queue.emplace(gain_of[at(start)], start);
    }
    const auto [gain, vertex] = queue.top();
    queue.pop();
    if (half_of[at(vertex)] == 1 || gain != gain_of[at(vertex)]) continue;
    const std::int64_t with = taken + graph.weight(vertex);
    if (with > wanted && with - wanted > wanted - taken) break;
    half_of[at(vertex)] = 1;
    taken = with;
    graph.for_each_edge(vertex, [&](VertexId neighbour, std::int32_t weight) {
      gain_of[at(neighbour)] += 2 * std::int64_t{weight};
      if (half_of[at(neighbour)] == 0) queue.emplace(gain_of[at(neighbour)], neighbour);
    });
  }
  return half_of;
}

}  // namespace

std::vector<std::int32_t> bisected(const WeightedGraph& graph, const Halves& halves,
                                   std::uint64_t seed) {
  constexpr std::uint32_t attempts = 8;
  std::vector<std::int32_t> best;
  Flaws least;
  for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
    std::vector<std::int32_t> half_of =
        grown(graph, halves.wanted[1], Random(seed).at_step(attempt));
    const Flaws flaws = refine(graph, halves.limits, half_of, {.boldness = 0.75});
    if (attempt == 0 || flaws < least) {
      best = std::move(half_of);
      least = flaws;
    }
  }
  return best;
}

}  // namespace tessera::detail
