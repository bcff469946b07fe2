// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/relational.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/graph/transform.hpp"

#include "core/listing.hpp"
#include "graph/triple_order.hpp"

namespace tessera {
namespace {

constexpr const char* where = "relational graph";

[[noreturn]] void contradict(const std::string& problem, const char* fix) {
  throw Error(ErrorCode::bad_data, problem, where, fix);
}

void require_kinds(const std::vector<VertexKind>& kinds) {
  std::set<std::string> names;
  std::int64_t vertices = 0;
  for (const VertexKind& kind : kinds) {
    if (!names.insert(kind.name).second) {
      contradict(fmt::format("the kind {} is there twice", in_quotes(kind.name)),
                 "give each kind a name of its own");
    }
    if (kind.count < 0) {
      contradict(fmt::format("the kind {} has {} vertices", in_quotes(kind.name), kind.count),
                 "count them from 0");
    }
    vertices += kind.count;
  }
  if (vertices > std::numeric_limits<VertexId>::max()) {
    contradict(fmt::format("the kinds have {} vertices together", grouped(vertices)),
               "there may be 2^31 - 1");
  }
}

std::string described(const Relation& relation, const std::vector<VertexKind>& kinds) {
  return fmt::format("{} from {} to {}", in_quotes(relation.name),
                     in_quotes(kinds[static_cast<std::size_t>(relation.source)].name),
                     in_quotes(kinds[static_cast<std::size_t>(relation.target)].name));
}

void require_relations(const std::vector<Relation>& relations,
                       const std::vector<VertexKind>& kinds) {
  std::set<std::tuple<std::string, std::int32_t, std::int32_t>> known;
  for (const Relation& relation : relations) {
    for (const std::int32_t kind : {relation.source, relation.target}) {
      if (kind >= 0 && kind < std::ssize(kinds)) continue;
      contradict(fmt::format("the relation {} names kind {} of {}", in_quotes(relation.name), kind,
                             kinds.size()),
                 "kinds are numbered from 0");
    }
    if (!known.insert({relation.name, relation.source, relation.target}).second) {
      contradict(fmt::format("the relation {} is there twice", described(relation, kinds)),
                 "join their edges, or give each a name of its own");
    }
  }
}

}  // namespace

RelationalGraph::RelationalGraph(std::vector<VertexKind> kinds, std::vector<Relation> relations,
                                 std::vector<Graph> graphs)
    : kinds_(std::move(kinds)), relations_(std::move(relations)), graphs_(std::move(graphs)) {
  validate();
}

const Graph& RelationalGraph::graph(std::int32_t relation) const {
  if (relation < 0 || relation >= num_relations()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no relation {}, but {}", relation, num_relations()), where,
                "relations are numbered from 0");
  }
  return graphs_[static_cast<std::size_t>(relation)];
}

VertexId RelationalGraph::num_vertices() const noexcept {
  VertexId count = 0;
  for (const VertexKind& kind : kinds_) count += kind.count;
  return count;
}

VertexId RelationalGraph::first_vertex(std::int32_t kind) const {
  if (kind < 0 || kind >= std::ssize(kinds_)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no kind {}, but {}", kind, kinds_.size()), where,
                "kinds are numbered from 0");
  }
  VertexId first = 0;
  for (std::int32_t i = 0; i < kind; ++i) first += kinds_[static_cast<std::size_t>(i)].count;
  return first;
}

EdgeOffset RelationalGraph::num_edges() const noexcept {
  EdgeOffset count = 0;
  for (const Graph& graph : graphs_) count += graph.num_edges();
  return count;
}

void RelationalGraph::validate() const {
  require_kinds(kinds_);
  require_relations(relations_, kinds_);
  if (graphs_.size() != relations_.size()) {
    contradict(fmt::format("{} graphs for {} relations", graphs_.size(), relations_.size()),
               "give one for each");
  }
  for (std::size_t r = 0; r < relations_.size(); ++r) {
    const Relation& relation = relations_[r];
    const VertexId targets = kinds_[static_cast<std::size_t>(relation.target)].count;
    const VertexId sources = kinds_[static_cast<std::size_t>(relation.source)].count;
    const Graph& graph = graphs_[r];
    if (graph.num_rows() != targets || graph.num_cols() != sources) {
      contradict(fmt::format("the relation {} has {} targets x {} sources, its kinds {} x {}",
                             described(relation, kinds_), graph.num_rows(), graph.num_cols(),
                             targets, sources),
                 "rows are the vertices of the target, columns those of the source");
    }
    graph.validate();
  }
}

std::ostream& operator<<(std::ostream& out, const RelationalGraph& graph) {
  constexpr std::int32_t most = 20;
  out << fmt::format("relational graph of {} kinds, {} relations, {} vertices, {} edges",
                     graph.kinds().size(), graph.num_relations(), graph.num_vertices(),
                     graph.num_edges());
  for (std::int32_t r = 0; r < std::min(graph.num_relations(), most); ++r) {
    const Relation& relation = graph.relations()[static_cast<std::size_t>(r)];
    out << fmt::format("\n  {}: {} edges", described(relation, graph.kinds()),
                       graph.graph(r).num_edges());
  }
  if (graph.num_relations() > most) {
    out << fmt::format("\n  and {} more relations", graph.num_relations() - most);
  }
  return out;
}

RelationalGraph from_triples(const Triples& triples, const VertexKind& vertices,
                             const std::vector<std::string>& relations, Duplicates duplicates) {
  const auto num_relations = static_cast<std::int32_t>(relations.size());
  require_triples(triples, vertices.count, num_relations);
  const std::vector<EdgeOffset> order = ordered_by(triples.relations, num_relations);
  std::vector<Relation> kept;
  std::vector<Graph> graphs;
  std::size_t next = 0;
  std::vector<VertexId> sources, targets;
  for (std::int32_t r = 0; r < num_relations; ++r) {
    sources.clear();
    targets.clear();
    for (; next < order.size(); ++next) {
      const auto k = static_cast<std::size_t>(order[next]);
      if (triples.relations[k] != r) break;
      sources.push_back(triples.heads[k]);
      targets.push_back(triples.tails[k]);
    }
    graphs.push_back(
        from_coo(vertices.count, vertices.count, targets, sources, {}, {.duplicates = duplicates}));
    kept.push_back({relations[static_cast<std::size_t>(r)], 0, 0});
  }
  return {{vertices}, std::move(kept), std::move(graphs)};
}

RelationalGraph with_inverses(const RelationalGraph& graph) {
  std::vector<Relation> relations = graph.relations();
  std::vector<Graph> graphs;
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) graphs.push_back(graph.graph(r));
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    const Relation& relation = graph.relations()[static_cast<std::size_t>(r)];
    relations.push_back({"rev_" + relation.name, relation.target, relation.source});
    graphs.push_back(transposed(graph.graph(r)));
  }
  return {graph.kinds(), std::move(relations), std::move(graphs)};
}

}  // namespace tessera
