// SPDX-License-Identifier: Apache-2.0
#include "describe_relational.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/io/relational.hpp"
#include "tessera/train/relational.hpp"

namespace tessera::app {
namespace {

Duplicates duplicates_of(const std::string& text) {
  if (text == "first") return Duplicates::first;
  if (text == "keep") return Duplicates::keep;
  if (text == "reject") return Duplicates::reject;
  throw Error(ErrorCode::invalid_argument, "edges of relations have no weights to add up",
              "--duplicates sum", "use --duplicates first or keep");
}

bool has_labels(const Dataset& vertices) {
  return !std::holds_alternative<std::monostate>(vertices.labels);
}

std::string text_of(const VertexKind& kind, const Dataset& vertices) {
  std::vector<std::string> parts{fmt::format("{} vertices", grouped(kind.count))};
  const std::int64_t features = vertices.num_features();
  parts.push_back(features > 0 ? fmt::format("{} features", grouped(features)) : "no features");
  if (has_labels(vertices)) parts.push_back(fmt::format("{} classes", vertices.num_classes()));
  if (!vertices.targets.empty()) parts.emplace_back("numbers to predict");
  if (vertices.train.size() + vertices.validation.size() + vertices.test.size() > 0) {
    parts.push_back(fmt::format("split in {} train, {} validation, {} test",
                                grouped(vertices.train.size()), grouped(vertices.validation.size()),
                                grouped(vertices.test.size())));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json kind_json(const VertexKind& kind, const Dataset& vertices) {
  return {{"name", kind.name},
          {"vertices", kind.count},
          {"features", vertices.num_features()},
          {"classes", has_labels(vertices) ? vertices.num_classes() : 0},
          {"train", vertices.train.size()},
          {"validation", vertices.validation.size()},
          {"test", vertices.test.size()}};
}

}  // namespace

void allow_options(const Arguments& app, const std::vector<const char*>& allowed,
                   const std::string& where) {
  for (const auto& option : app.options()) {
    const bool is_allowed = option->group() == "Common options" ||
                            std::any_of(allowed.begin(), allowed.end(), [&](const char* flag) {
                              return app.find(flag) == option.get();
                            });
    if (is_allowed || !option->is_given()) continue;
    throw Error(ErrorCode::invalid_argument, "does nothing " + where, option->names().back(),
                "leave it out");
  }
}

RelationalData load_relational(Session& session, const DataOptions& options) {
  session.stage("reading");
  io::ReadOptions read;
  read.progress = session.progress();
  read.duplicates = duplicates_of(options.duplicates);
  read.nodes.label = options.tables.label;
  read.nodes.drop = options.tables.drop;
  read.nodes.unknown =
      options.tables.unknown_ids == "drop" ? io::UnknownIds::drop : io::UnknownIds::reject;
  RelationalData data = io::read_relational(options.source, read);
  session.add_notes(data.notes);
  return options.steps.symmetrise ? with_inverses(std::move(data)) : data;
}

std::string headline(const RelationalData& data) {
  return fmt::format("{}: {} kinds, {} relations, {} vertices, {} edges", printable(data.name),
                     grouped(data.kinds.size()), grouped(data.graph.num_relations()),
                     grouped(data.graph.num_vertices()), grouped(data.graph.num_edges()));
}

Json brief_json(const RelationalData& data) {
  return {{"name", data.name},
          {"kinds", data.kinds.size()},
          {"relations", data.graph.num_relations()},
          {"vertices", data.graph.num_vertices()},
          {"edges", data.graph.num_edges()}};
}

void describe_relational(Session& session, const DataOptions& options) {
  constexpr std::int32_t most = 20;
  const Stopwatch watch;
  const RelationalData data = load_relational(session, options);
  Table table("ll");
  Json json{{"verb", "info"}, {"source", options.source}};
  json.update(brief_json(data));
  json["of_kinds"] = Json::array();
  json["of_relations"] = Json::array();
  const RelationalGraph& graph = data.graph;
  for (std::size_t k = 0; k < data.kinds.size(); ++k) {
    const VertexKind& kind = graph.kinds()[k];
    table.add({printable(kind.name), text_of(kind, data.kinds[k])});
    json["of_kinds"].push_back(kind_json(kind, data.kinds[k]));
  }
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    const Relation& relation = graph.relations()[static_cast<std::size_t>(r)];
    const std::string& source = graph.kinds()[static_cast<std::size_t>(relation.source)].name;
    const std::string& target = graph.kinds()[static_cast<std::size_t>(relation.target)].name;
    const EdgeOffset edges = graph.graph(r).num_edges();
    if (r < most) {
      table.add({printable(relation.name), fmt::format("from {} to {}, {} edges", printable(source),
                                                       printable(target), grouped(edges))});
    }
    json["of_relations"].push_back(
        {{"name", relation.name}, {"source", source}, {"target", target}, {"edges", edges}});
  }
  if (graph.num_relations() > most) {
    table.add({"", fmt::format("and {} more relations", graph.num_relations() - most)});
  }
  table.add({"loaded in", human_seconds(watch.seconds())});
  json["load_seconds"] = watch.seconds();
  session.deliver(headline(data) + "\n" + table.text(), json);
}

void describe_relational_model(Session& session, const std::string& path) {
  const train::RelationalCheckpoint model = train::load_relational_checkpoint(path);
  const train::KnownKind& learned = model.kinds[static_cast<std::size_t>(model.labelled)];
  std::vector<std::string> kinds;
  Json of_kinds = Json::array();
  for (const train::KnownKind& kind : model.kinds) {
    const std::string how = kind.features > 0
                                ? fmt::format("{} features", grouped(kind.features))
                                : fmt::format("{} vertices learned", grouped(kind.embedded));
    kinds.push_back(fmt::format("{} ({})", printable(kind.name), how));
    of_kinds.push_back(
        {{"name", kind.name}, {"features", kind.features}, {"embedded", kind.embedded}});
  }
  const train::Evaluation& best = model.best.evaluation;
  Table table("ll");
  table.add({"model", train::describe(model.model)});
  table.add({"predicts",
             fmt::format("{} classes of {}", grouped(model.outputs), printable(learned.name))});
  table.add({"kinds", fmt::format("{}", fmt::join(kinds, ", "))});
  table.add({"relations", grouped(model.relations.size())});
  table.add({"weights", fmt::format("of run {}, epoch {}: validation {:.2f} %, test {:.2f} %",
                                    model.best.run + 1, model.best.epoch, best.validation * 100,
                                    best.test * 100)});
  session.deliver(
      fmt::format("{}: a model of kinds and relations\n", printable(path)) + table.text(),
      {{"verb", "info"},
       {"source", path},
       {"model", nn::to_string(model.model.kind)},
       {"learned", learned.name},
       {"outputs", model.outputs},
       {"of_kinds", of_kinds},
       {"relations", model.relations.size()},
       {"validation", best.validation},
       {"test", model.split.test.empty() ? Json() : Json(best.test)}});
}

}  // namespace tessera::app
