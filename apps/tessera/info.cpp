// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "describe.hpp"
#include "describe_checkpoint.hpp"
#include "describe_relational.hpp"
#include "describe_triples.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "picture/graph_picture.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/graph/stats.hpp"
#include "tessera/io/relational.hpp"
#include "tessera/io/triples.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/relational.hpp"
#include "tessera/train/triples.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

Json null_if_negative(std::int64_t count) { return count < 0 ? Json() : Json(count); }

bool has_split(const Dataset& dataset) {
  return !dataset.train.empty() || !dataset.validation.empty() || !dataset.test.empty();
}

std::int64_t num_splits(const Dataset& dataset) {
  return dataset.splits.empty() ? (has_split(dataset) ? 1 : 0) : std::ssize(dataset.splits);
}

std::int64_t num_known(const Targets& targets, std::int64_t k) {
  std::int64_t known = 0;
  for (std::int64_t i = 0; i < targets.matrix->rows(); ++i) {
    known += std::isnan((*targets.matrix)(i, k)) ? 0 : 1;
  }
  return known;
}

Json targets_json(const Targets& targets) {
  Json list = Json::array();
  for (std::int64_t k = 0; k < targets.count(); ++k) {
    list.push_back({{"name", target_name(targets.names, targets.count(), k)},
                    {"known", num_known(targets, k)}});
  }
  return list;
}

/// "price of 1,200 and area of 1,100 vertices"
std::string targets_text(const Targets& targets) {
  constexpr std::int64_t most = 6;
  std::string text;
  for (std::int64_t k = 0; k < std::min(targets.count(), most); ++k) {
    text += fmt::format("{}{} ({} known)", k == 0 ? "" : ", ",
                        printable(target_name(targets.names, targets.count(), k)),
                        grouped(num_known(targets, k)));
  }
  return targets.count() > most ? fmt::format("{} and {} more", text, targets.count() - most)
                                : text;
}

Json to_json(const LoadedData& data, const GraphStats& stats, const DatasetSummary& summary) {
  const Dataset& dataset = data.dataset;
  Json extras = Json::array();
  for (const auto& [name, extra] : dataset.extras) extras.push_back(name);
  return {
      {"verb", "info"},
      {"name", dataset.name},
      {"vertices", stats.num_rows},
      {"columns", stats.num_cols},
      {"edges", stats.num_edges},
      {"edges_stored", null_if_negative(dataset.edges_stored)},
      {"self_loops", stats.num_self_loops},
      {"edges_symmetrised_loop_free", null_if_negative(stats.edges_symmetrised_loop_free)},
      {"weighted", dataset.graph.is_weighted()},
      {"symmetric_pattern", stats.symmetric_pattern},
      {"symmetric_values", stats.symmetric_values},
      {"degree",
       {{"min", stats.min_degree},
        {"mean", stats.mean_degree},
        {"median", stats.median_degree},
        {"max", stats.max_degree},
        {"histogram", stats.degree_histogram}}},
      {"isolated", stats.num_isolated},
      {"empty_rows", stats.num_empty_rows},
      {"components", stats.num_components},
      {"largest_component", stats.largest_component},
      {"bandwidth", stats.bandwidth},
      {"features", dataset.num_features()},
      {"feature_kind", summary.feature_kind},
      {"feature_nonzeros", summary.feature_nonzeros},
      {"edge_features", dataset.edge_features.count()},
      {"classes", summary.classes},
      {"label_width", summary.classes},
      {"multi_label", dataset.is_multi_label()},
      {"labelled", summary.labelled},
      {"train", dataset.train.size()},
      {"validation", dataset.validation.size()},
      {"test", dataset.test.size()},
      {"splits", num_splits(dataset)},
      {"graphs", dataset.num_graphs()},
      {"graph_classes", summary.graph_classes},
      {"extras", extras},
      {"memory_bytes", summary.memory_bytes},
      {"load_seconds", data.seconds},
  };
}

std::string symmetry(const GraphStats& stats) {
  if (stats.num_rows != stats.num_cols) return "rectangular";
  if (stats.symmetric_values) return "symmetric";
  return stats.symmetric_pattern ? "symmetric pattern, values differ" : "directed";
}

void add_graph(const Dataset& dataset, const GraphStats& stats, Table& table) {
  table.add({"edges", fmt::format("{}, {}, {}", grouped(stats.num_edges), symmetry(stats),
                                  dataset.graph.is_weighted() ? "weighted" : "no weights")});
  if (dataset.edges_stored >= 0 && dataset.edges_stored != stats.num_edges) {
    table.add({"stored in the file", grouped(dataset.edges_stored)});
  }
  if (stats.num_self_loops > 0) table.add({"self loops", grouped(stats.num_self_loops)});
  if (stats.edges_symmetrised_loop_free >= 0 &&
      stats.edges_symmetrised_loop_free != stats.num_edges) {
    table.add({"if symmetrised",
               fmt::format("{} edges, without loops", grouped(stats.edges_symmetrised_loop_free))});
  }
  table.add({"degree", fmt::format("mean {}, median {}, from {} to {}",
                                   human_real(stats.mean_degree), stats.median_degree,
                                   grouped(stats.min_degree), grouped(stats.max_degree))});
  table.add(
      {"components", fmt::format("{}, the largest has {} vertices", grouped(stats.num_components),
                                 grouped(stats.largest_component))});
  if (stats.num_isolated > 0) table.add({"isolated", grouped(stats.num_isolated)});
  table.add({"bandwidth", grouped(stats.bandwidth)});
}

void add_vertex_data(const Dataset& dataset, const DatasetSummary& summary, Table& table) {
  if (const std::int64_t features = dataset.num_features(); features > 0) {
    const double cells =
        static_cast<double>(features) * static_cast<double>(dataset.graph.num_rows());
    const double share = cells > 0 ? static_cast<double>(summary.feature_nonzeros) / cells : 0;
    table.add({"features", fmt::format("{}, {}, {} nonzero", grouped(features),
                                       summary.feature_kind, human_share(share))});
  }
  if (const std::int64_t features = dataset.edge_features.count(); features > 0) {
    table.add({"features of edges", grouped(features)});
  }
  if (summary.classes > 0) {
    table.add({"classes",
               fmt::format("{}{}, {} vertices labelled", grouped(summary.classes),
                           dataset.is_multi_label() ? " at once" : "", grouped(summary.labelled))});
  }
  for (const Targets* targets : {&dataset.targets, &dataset.graph_targets}) {
    if (!targets->empty()) table.add({"numbers to predict", targets_text(*targets)});
  }
  if (has_split(dataset)) {
    const std::int64_t splits = num_splits(dataset);
    table.add(
        {"split", fmt::format("{} train, {} validation, {} test{}", grouped(dataset.train.size()),
                              grouped(dataset.validation.size()), grouped(dataset.test.size()),
                              splits > 1 ? fmt::format(", the first of {}", splits) : "")});
  }
  if (!dataset.graph_ids.empty()) {
    table.add(
        {"union of", fmt::format("{} graphs{}", grouped(dataset.num_graphs()),
                                 summary.graph_classes > 0
                                     ? fmt::format(", {} classes", grouped(summary.graph_classes))
                                     : "")});
  }
  if (!dataset.extras.empty()) {
    std::string names;
    for (const auto& [name, extra] : dataset.extras) names += (names.empty() ? "" : ", ") + name;
    table.add({"other arrays", names});
  }
}

// Bucket k holds the degrees from 2^(k-1) to 2^k - 1.
std::string bucket_name(std::size_t bucket) {
  if (bucket < 2) return std::to_string(bucket);
  const std::int64_t low = std::int64_t{1} << (bucket - 1);
  return fmt::format("{}-{}", grouped(low), grouped(2 * low - 1));
}

std::string histogram(const GraphStats& stats) {
  constexpr double full_bar = 40;
  const auto& buckets = stats.degree_histogram;
  if (buckets.empty()) return {};
  const std::int64_t most =
      std::max<std::int64_t>(1, *std::max_element(buckets.begin(), buckets.end()));
  Table table("rrl");
  table.add({"degree", "rows"});
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const double share = static_cast<double>(buckets[bucket]) / static_cast<double>(most);
    auto length = static_cast<std::size_t>(share * full_bar);
    if (buckets[bucket] > 0 && length == 0) length = 1;
    table.add({bucket_name(bucket), grouped(buckets[bucket]), std::string(length, '#')});
  }
  return "\n" + table.text();
}

std::string to_text(const LoadedData& data, const GraphStats& stats,
                    const DatasetSummary& summary) {
  Table table("ll");
  add_graph(data.dataset, stats, table);
  add_vertex_data(data.dataset, summary, table);
  table.add({"memory", human_bytes(summary.memory_bytes)});
  table.add({"loaded in", human_seconds(data.seconds)});
  return headline(data.dataset) + "\n" + table.text() + histogram(stats);
}

struct InfoArguments {
  DataOptions data;
  std::string picture;
};

void draw(Session& session, const Dataset& dataset, const std::string& path) {
  session.stage("drawing");
  const Graph& graph = dataset.graph;
  picture::write(picture::graph_picture(headline(dataset), picture::density_of(graph),
                                        picture::degrees_of(graph)),
                 path);
}

/// A trained model, or what has triples, has no tables, no edges to change and no picture.
void reject_options_of_data(const Arguments& app, const char* where) {
  for (const auto& option : app.options()) {
    const bool is_common =
        option->group() == "Common options" || option.get() == app.find("--data");
    if (is_common || !option->is_given()) continue;
    throw Error(ErrorCode::invalid_argument, std::string("does nothing ") + where,
                option->names().back(), "leave it out, or name other data");
  }
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<InfoArguments>();
  add_data_options(app, arguments->data);
  add_reading_options(app, arguments->data);
  add_nonfinite_option(app, arguments->data.nonfinite);
  app.add_option("--picture", arguments->picture,
                 "picture of the adjacency matrix and of the degrees, .svg or .png")
      ->type_name("FILE");
  const auto run = [&app, arguments](Session& session) {
    picture::require_picture_ending(arguments->picture, "--picture");
    const std::string& source = arguments->data.source;
    if (arguments->data.format.empty() && train::holds_checkpoint(source)) {
      reject_options_of_data(app, "for a trained model");
      const train::Checkpoint checkpoint = train::load_checkpoint(source);
      session.deliver(checkpoint_text(checkpoint, source), checkpoint_json(checkpoint, source));
      return ExitCode::ok;
    }
    if (arguments->data.format.empty() && train::holds_triple_knowledge(source)) {
      reject_options_of_data(app, "for a trained model");
      describe_triple_model(session, source);
      return ExitCode::ok;
    }
    if (arguments->data.format.empty() && train::holds_relational_checkpoint(source)) {
      reject_options_of_data(app, "for a trained model");
      describe_relational_model(session, source);
      return ExitCode::ok;
    }
    if (arguments->data.format.empty() && io::holds_triples(source)) {
      reject_options_of_data(app, "for a folder of triples");
      describe_triples(session, source);
      return ExitCode::ok;
    }
    if (arguments->data.format.empty() && io::holds_relational(source)) {
      allow_options(app, relational_reading, "for a folder of kinds of vertices");
      describe_relational(session, arguments->data);
      return ExitCode::ok;
    }
    const LoadedData data = load(session, arguments->data);
    session.stage("counting");
    const GraphStats stats = compute_stats(data.dataset.graph);
    session.stage("summarising");
    const DatasetSummary summary = summarise(data.dataset);
    std::string text = to_text(data, stats, summary);
    Json json = to_json(data, stats, summary);
    for (const auto& [name, targets] : {std::pair("targets", &data.dataset.targets),
                                        std::pair("graph_targets", &data.dataset.graph_targets)}) {
      if (!targets->empty()) json[name] = targets_json(*targets);
    }
    if (!arguments->picture.empty()) {
      draw(session, data.dataset, arguments->picture);
      text += fmt::format("\n  picture written to {}\n", printable(arguments->picture));
      json["picture"] = arguments->picture;
    }
    session.deliver(text, json);
    return ExitCode::ok;
  };
  return {run, [arguments] {
            return with_data_files(arguments->data,
                                   {{"--picture", arguments->picture, FileRole::picture}});
          }};
}

}  // namespace

const Verb info_verb{"info", "describe a graph and its data", "[options] SOURCE",
                     "tessera info embedded:citation\n"
                     "tessera info edges.csv\n"
                     "tessera info --data graph.npz --json -\n"
                     "tessera info --data graph.npz --picture graph.png\n"
                     "tessera info --data 'generate:rmat?scale=14&edges=200000'",
                     setup};

}  // namespace tessera::app
