// SPDX-License-Identifier: Apache-2.0
#include "describe_triples.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/graph/relational.hpp"
#include "tessera/io/triples.hpp"
#include "tessera/train/triples.hpp"

namespace tessera::app {
namespace {

std::vector<std::int64_t> uses_of(const std::vector<std::int32_t>& numbers, std::int64_t count) {
  std::vector<std::int64_t> uses(static_cast<std::size_t>(count), 0);
  for (const std::int32_t number : numbers) ++uses[static_cast<std::size_t>(number)];
  return uses;
}

/// The numbers of relations, those of most training triples first.
std::vector<std::int64_t> by_uses(const std::vector<std::int64_t>& uses) {
  std::vector<std::int64_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return uses[static_cast<std::size_t>(a)] > uses[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace

KnowledgeGraph load_triples(Session& session, const std::string& path) {
  session.stage("reading");
  KnowledgeGraph graph = io::read_triples(path);
  session.add_notes(graph.notes);
  return graph;
}

std::string headline(const KnowledgeGraph& graph) {
  return fmt::format("{}: {} entities, {} relations, {} triples", printable(graph.name),
                     grouped(graph.num_entities()), grouped(graph.num_relations()),
                     grouped(graph.train.size() + graph.validation.size() + graph.test.size()));
}

Json brief_json(const KnowledgeGraph& graph) {
  return {{"name", graph.name},
          {"entities", graph.num_entities()},
          {"relations", graph.num_relations()},
          {"triples",
           {{"train", graph.train.size()},
            {"validation", graph.validation.size()},
            {"test", graph.test.size()}}}};
}

void describe_triples(Session& session, const std::string& path) {
  constexpr std::size_t most = 10;
  const KnowledgeGraph graph = load_triples(session, path);
  const std::vector<std::int64_t> uses = uses_of(graph.train.relations, graph.num_relations());
  const RelationSegments segments =
      segments_of(graph.train, graph.num_entities(), graph.num_relations());
  Table table("ll");
  table.add({"train", fmt::format("{} triples", grouped(graph.train.size()))});
  table.add({"validation", fmt::format("{} triples", grouped(graph.validation.size()))});
  table.add({"test", fmt::format("{} triples", grouped(graph.test.size()))});
  table.add({"pairs of a relation and a tail", grouped(segments.edges.num_rows())});
  Json json{{"verb", "info"}, {"source", path}};
  json.update(brief_json(graph));
  Json relations = Json::array();
  const std::vector<std::int64_t> order = by_uses(uses);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string name(graph.relations[order[i]]);
    const std::int64_t count = uses[static_cast<std::size_t>(order[i])];
    if (i < most) {
      table.add({i == 0 ? "relations in train" : "",
                 fmt::format("{}: {} triples", name, grouped(count))});
    }
    relations.push_back({{"name", name}, {"train", count}});
  }
  if (order.size() > most) {
    table.add({"", fmt::format("and {} more relations", order.size() - most)});
  }
  json["relation_counts"] = relations;
  session.deliver(headline(graph) + "\n" + table.text(), json);
}

void describe_triple_model(Session& session, const std::string& path) {
  const train::TripleKnowledge knowledge = train::load_triple_knowledge(path);
  const std::int64_t width = knowledge.entity_rows->cols();
  Table table("ll");
  table.add({"model", printable(knowledge.model)});
  table.add(
      {"answers about", fmt::format("{} entities, {} relations", grouped(knowledge.entities.size()),
                                    grouped(knowledge.relations.size()))});
  table.add({"numbers of each", grouped(width)});
  session.deliver(fmt::format("{}: a model of triples\n", printable(path)) + table.text(),
                  {{"verb", "info"},
                   {"source", path},
                   {"model", knowledge.model},
                   {"entities", knowledge.entities.size()},
                   {"relations", knowledge.relations.size()},
                   {"width", width}});
}

}  // namespace tessera::app
