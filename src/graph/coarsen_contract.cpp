// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "tessera/core/parallel.hpp"

#include "graph/coarsen.hpp"
#include "graph/ratings.hpp"

namespace tessera::detail {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// The edges of some clusters in a row.
struct Piece {
  std::vector<VertexId> neighbours;
  std::vector<std::int32_t> weights;
};

}  // namespace

Grouped grouped_by(const std::vector<std::int32_t>& group_of, std::int32_t groups) {
  Grouped result{std::vector<VertexId>(at(groups) + 1), std::vector<VertexId>(group_of.size())};
  for (const std::int32_t group : group_of) ++result.begins[at(group) + 1];
  std::partial_sum(result.begins.begin(), result.begins.end(), result.begins.begin());
  std::vector<VertexId> next(result.begins.begin(), result.begins.end() - 1);
  for (std::size_t v = 0; v < group_of.size(); ++v) {
    result.vertices[at(next[at(group_of[v])]++)] = static_cast<VertexId>(v);
  }
  return result;
}

WeightedGraph contracted(const WeightedGraph& graph, const std::vector<VertexId>& cluster_of) {
  const VertexId clusters = *std::max_element(cluster_of.begin(), cluster_of.end()) + 1;
  const Grouped members = grouped_by(cluster_of, clusters);
  std::vector<std::int32_t> vertex_weights(at(clusters));
  std::vector<EdgeOffset> offsets(at(clusters) + 1);
  const std::int64_t grain = even_grain(clusters, 64);
  std::vector<Piece> pieces(at((clusters + grain - 1) / grain));
  parallel_ranges(clusters, grain, [&](std::int64_t begin, std::int64_t end) {
    Piece& piece = pieces[at(begin / grain)];
    Ratings ratings;
    for (std::int64_t cluster = begin; cluster < end; ++cluster) {
      const VertexId* const first = members.vertices.data() + members.begins[at(cluster)];
      const VertexId* const last = members.vertices.data() + members.begins[at(cluster) + 1];
      EdgeOffset degrees = 0;
      std::for_each(first, last, [&](VertexId v) { degrees += graph.degree(v); });
      ratings.start(degrees, clusters);
      std::for_each(first, last, [&](VertexId v) {
        vertex_weights[at(cluster)] += graph.weight(v);
        graph.for_each_edge(v, [&](VertexId neighbour, std::int32_t weight) {
          const VertexId other = cluster_of[at(neighbour)];
          if (other != cluster) ratings.add(other, weight);
        });
      });
      offsets[at(cluster)] = static_cast<EdgeOffset>(ratings.size());
      ratings.for_each([&](VertexId other, std::int64_t sum) {
        piece.neighbours.push_back(other);
        piece.weights.push_back(static_cast<std::int32_t>(
            std::min<std::int64_t>(sum, std::numeric_limits<std::int32_t>::max())));
      });
    }
  });
  const EdgeOffset edges = exclusive_scan(std::span<EdgeOffset>(offsets));
  Piece whole{std::vector<VertexId>(at(edges)), std::vector<std::int32_t>(at(edges))};
  parallel_tasks(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t number) {
    Piece piece = std::move(pieces[at(number)]);
    const EdgeOffset begin = offsets[at(number * grain)];
    std::copy(piece.neighbours.begin(), piece.neighbours.end(), whole.neighbours.begin() + begin);
    std::copy(piece.weights.begin(), piece.weights.end(), whole.weights.begin() + begin);
  });
  return {std::move(offsets), std::move(whole.neighbours), std::move(whole.weights),
          std::move(vertex_weights), graph.weight()};
}

}  // namespace tessera::detail
