// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/graph/relational.hpp"

#include "graph/triple_order.hpp"

namespace tessera {
namespace {

/// The segments of edges that come one after the other, by relation, target and source.
class Segments {
 public:
  void add(VertexId source, std::int32_t relation, VertexId target) {
    if (targets_.empty() || relations_.back() != relation || targets_.back() != target) {
      if (std::ssize(targets_) == std::numeric_limits<VertexId>::max()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("more than {} pairs of a relation and a target",
                                grouped(std::ssize(targets_))),
                    "relational graph", "divide the graph");
      }
      offsets_.push_back(std::ssize(sources_));
      relations_.push_back(relation);
      targets_.push_back(target);
    } else if (sources_.back() == source) {
      has_repeated_edges_ = true;
    }
    sources_.push_back(source);
  }

  RelationSegments finished(VertexId num_vertices, std::int32_t num_relations) && {
    const auto count = static_cast<VertexId>(targets_.size());
    offsets_.push_back(std::ssize(sources_));
    std::vector<EdgeOffset> one_each(targets_.size() + 1);
    std::iota(one_each.begin(), one_each.end(), EdgeOffset{0});
    RelationSegments segments;
    segments.targets = by_target(num_vertices);
    segments.edges = Graph(count, num_vertices, std::move(offsets_), std::move(sources_));
    if (has_repeated_edges_) segments.edges = segments.edges.with_repeated_edges();
    segments.relations = Graph(count, num_relations, std::move(one_each), std::move(relations_));
    return segments;
  }

 private:
  /// Segments of one target come in the order of their numbers.
  Graph by_target(VertexId num_vertices) const {
    std::vector<EdgeOffset> offsets(static_cast<std::size_t>(num_vertices) + 1, 0);
    for (const VertexId target : targets_) ++offsets[static_cast<std::size_t>(target) + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    const std::vector<EdgeOffset> order = ordered_by(targets_, num_vertices);
    return Graph(num_vertices, static_cast<VertexId>(targets_.size()), std::move(offsets),
                 std::vector<VertexId>(order.begin(), order.end()));
  }

  std::vector<EdgeOffset> offsets_;
  std::vector<VertexId> sources_, targets_;
  std::vector<std::int32_t> relations_;
  bool has_repeated_edges_ = false;
};

}  // namespace

RelationSegments segments_of(const RelationalGraph& graph) {
  Segments segments;
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    const Relation& relation = graph.relations()[static_cast<std::size_t>(r)];
    const VertexId first_source = graph.first_vertex(relation.source);
    const VertexId first_target = graph.first_vertex(relation.target);
    const Graph& edges = graph.graph(r);
    for (VertexId target = 0; target < edges.num_rows(); ++target) {
      for (const VertexId source : edges.neighbours(target)) {
        segments.add(first_source + source, r, first_target + target);
      }
    }
  }
  return std::move(segments).finished(graph.num_vertices(), graph.num_relations());
}

RelationSegments segments_of(const Triples& triples, VertexId num_vertices,
                             std::int32_t num_relations) {
  require_triples(triples, num_vertices, num_relations);
  std::vector<EdgeOffset> order = ordered_by(triples.heads, num_vertices);
  order = ordered_by(triples.tails, num_vertices, order);
  order = ordered_by(triples.relations, num_relations, order);
  Segments segments;
  for (const EdgeOffset place : order) {
    const auto k = static_cast<std::size_t>(place);
    segments.add(triples.heads[k], triples.relations[k], triples.tails[k]);
  }
  return std::move(segments).finished(num_vertices, num_relations);
}

}  // namespace tessera
