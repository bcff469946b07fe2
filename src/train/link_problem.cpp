// SPDX-License-Identifier: Apache-2.0
#include "train/link_problem.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/data/feature_columns.hpp"
#include "tessera/links/negatives.hpp"
#include "tessera/links/split.hpp"

#include "core/listing.hpp"
#include "io/table_values.hpp"
#include "train/link_sampler.hpp"

namespace tessera::train {
namespace {

using links::LinkPart;

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

std::vector<double> times_of(const Dataset& dataset, const std::string& name) {
  const EdgeFeatures& features = dataset.edge_features;
  const std::string what = "times of edges";
  if (features.count() == 0 || features.names.empty()) {
    reject(fmt::format("the edges have no column {}", in_quotes(name)), what,
           "read them with the edges, as a column of a table");
  }
  std::vector<std::string> known;
  for (const FeatureColumn& column : feature_columns(features.names, features.category_prefixes)) {
    known.push_back(in_quotes(column.name));
    if (column.name != name) continue;
    if (column.has_categories()) {
      const auto& texts = column.categories;
      const auto odd = std::find_if_not(texts.begin(), texts.end(), io::parse_value);
      throw Error(ErrorCode::bad_data,
                  fmt::format("the column {} holds texts, such as {}", in_quotes(name),
                              in_quotes(odd == texts.end() ? texts.front() : *odd)),
                  what, "give numbers that grow with time: seconds, or 20240531 for a date");
    }
    std::vector<double> times;
    for (std::int64_t edge = 0; edge < features.matrix->rows(); ++edge) {
      times.push_back(static_cast<double>((*features.matrix)(edge, column.first)));
    }
    return times;
  }
  reject(fmt::format("the edges have no column {}", in_quotes(name)), what,
         "name one of " + listed(known));
}

std::vector<LinkPart> parts_of(const Dataset& dataset, const TrainOptions& options) {
  const LinkOptions& links = options.links;
  if (!links.parts.empty()) return links.parts;
  if (links.time.empty()) return draw_link_parts(dataset.graph, links.shares, options.seed);
  return link_parts_by_time(dataset.graph, times_of(dataset, links.time), links.shares);
}

/// The edges that are asked for: of an edge and its reverse the one from the smaller vertex, where
/// the graph is symmetric.
Split split_of(const Graph& graph, const std::vector<LinkPart>& parts, bool once) {
  Split split;
  for (VertexId target = 0; target < graph.num_rows(); ++target) {
    for (EdgeOffset k = graph.row_offsets()[target]; k < graph.row_offsets()[target + 1]; ++k) {
      if (once && graph.col_indices()[k] > target) continue;
      const LinkPart part = parts[static_cast<std::size_t>(k)];
      (part == LinkPart::test         ? split.test
       : part == LinkPart::validation ? split.validation
                                      : split.train)
          .push_back(k);
    }
  }
  return split;
}

bool has_self_loops(const Graph& graph) {
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    const auto row = graph.neighbours(v);
    if (std::binary_search(row.begin(), row.end(), v)) return true;
  }
  return false;
}

void note_links(const TrainOptions& options, bool once, Problem& problem) {
  const Split& split = problem.split;
  const LinkOptions& links = options.links;
  const std::string how = !links.parts.empty()  ? "as given"
                          : !links.time.empty() ? "by " + in_quotes(links.time)
                                                : fmt::format("drawn with seed {}", options.seed);
  problem.notes.push_back(
      fmt::format("{} link{} to train on, {} for validation, {} for the test, {}{}",
                  grouped(std::ssize(split.train)), split.train.size() == 1 ? "" : "s",
                  grouped(std::ssize(split.validation)), grouped(std::ssize(split.test)), how,
                  once ? "; both directions of an edge are one link" : ""));
  if (!once && links.decoder != nn::LinkDecoderKind::mlp) {
    problem.notes.push_back(fmt::format(
        "the decoder {} gives both directions of a pair one score; mlp tells them apart",
        nn::to_string(links.decoder)));
  }
  if (has_self_loops(problem.graph)) {
    problem.notes.emplace_back(
        "some edges lead from a vertex to itself and count as links; --self-loops remove "
        "leaves them out");
  }
  if (split.test.empty()) {
    problem.notes.emplace_back("the split has no test part: nothing is tested");
  }
}

/// How many vertices are of the first of two kinds, between which all edges are.
VertexId sources_of(const Dataset& dataset, const Kinds& kinds) {
  if (!kinds.given()) return 0;
  const VertexId first = num_of_first_kind(dataset.vertex_names, kinds);
  for (VertexId row = 0; row < dataset.graph.num_rows(); ++row) {
    for (const VertexId col : dataset.graph.neighbours(row)) {
      if ((row < first) != (col < first)) continue;
      throw Error(
          ErrorCode::bad_data,
          fmt::format("an edge leads from {} to {}, which are of one kind",
                      in_quotes(dataset.vertex_names[col]), in_quotes(dataset.vertex_names[row])),
          "kinds", "leave out --self-loops add, or the kinds");
    }
  }
  return first;
}

/// Otherwise there is nothing to tell apart.
void require_pairs_without_edges(const Problem& problem) {
  const Graph& graph = problem.graph;
  if (problem.num_sources > 0) {
    const std::int64_t sources = problem.num_sources;
    if (graph.num_edges() < 2 * sources * (graph.num_rows() - sources)) return;
    throw Error(ErrorCode::bad_data, "every pair of two kinds is an edge: there are no others",
                problem.name, "use a graph with fewer edges");
  }
  const auto vertices = static_cast<std::int64_t>(graph.num_rows());
  std::int64_t loops = 0;
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    const auto row = graph.neighbours(v);
    loops += std::binary_search(row.begin(), row.end(), v) ? 1 : 0;
  }
  if (graph.num_edges() - loops < vertices * (vertices - 1)) return;
  throw Error(ErrorCode::bad_data, "every pair of vertices is an edge: there are no others",
              problem.name, "use a graph with fewer edges");
}

/// Otherwise a source that is trained on has none to draw, which its name says best.
void require_negatives(const Dataset& dataset, const TrainOptions& options,
                       const Problem& problem) {
  if (options.links.negatives == links::NegativeKind::uniform) return;
  const links::LinkSplit split = links::split_links(problem.graph, problem.link_parts);
  const LinkSampler sampler(options.links.avoids_held_out ? problem.graph : split.validation_graph,
                            problem.num_sources);
  const auto& sources = split.train.sources;
  const auto found = std::find_if(sources.begin(), sources.end(), [&](VertexId source) {
    return sampler.num_negatives_of(source) == 0;
  });
  if (found == sources.end()) return;
  const std::string name = dataset.vertex_names.empty() ? fmt::format("vertex {}", *found)
                                                        : in_quotes(dataset.vertex_names[*found]);
  throw Error(ErrorCode::bad_data,
              fmt::format("{} has an edge to every {}: none is left to draw", name,
                          problem.num_sources > 0 ? options.links.kinds.target : "other vertex"),
              "negatives", "use uniform");
}

}  // namespace

void require_link_options(const nn::ModelConfig& config, const TrainOptions& options) {
  const LinkOptions& links = options.links;
  const std::pair<bool, std::pair<const char*, const char*>> impossible[] = {
      {config.readout.has_value(), {"readout", "a readout, which makes one row of a graph"}},
      {!config.bits.empty(), {"bits", "training for few bits"}},
      {config.precomputed,
       {"precomputed", "features that were propagated along the edges that are held out"}},
      {options.pattern.kind != PatternChoice::Kind::off, {"pattern", "an order of the vertices"}},
      {options.batching != Batching::full, {"batching", "batches of vertices"}},
      {options.process_every_step, {"process_every_step", "a graph that is new in every step"}},
      {options.folds > 0, {"folds", "folds"}},
      {options.split_index.has_value(), {"split_index", "a split of the vertices"}},
      {!options.class_weights.none(), {"class_weights", "weights of classes"}}};
  for (const auto& [given, name] : impossible) {
    if (given) {
      reject(std::string("links are predicted without ") + name.second, name.first, "leave it out");
    }
  }
  const Metric metric = options.metric;
  if (metric != Metric::automatic && metric != Metric::roc_auc &&
      metric != Metric::average_precision && !is_of_lists(metric)) {
    reject(fmt::format("{} of links", to_string(metric)), "metric",
           "use roc_auc, average_precision, recall or ndcg");
  }
  if (is_of_lists(metric) && links.decoder == nn::LinkDecoderKind::mlp) {
    reject("lists of a perceptron's scores in every epoch would take too long", "metric",
           "use roc_auc or average_precision, or the decoder dot or distmult");
  }
  if (links.top < 1) reject(fmt::format("lists of {}", links.top), "top", "give at least 1");
  if (links.embedding < 1) {
    reject(fmt::format("embeddings of {} numbers", links.embedding), "embedding",
           "give at least 1");
  }
  if (links.per_positive < 1) {
    reject(fmt::format("{} negatives for each positive pair", links.per_positive), "per_positive",
           "give at least 1");
  }
  if (links.pairs_per_batch < 0) {
    reject(fmt::format("{} pairs in a batch", links.pairs_per_batch), "pairs_per_batch",
           "give at least 1, or 0 for all");
  }
  if (!(links.margin >= 0) || !std::isfinite(links.margin)) {
    reject(fmt::format("a margin of {}", links.margin), "margin", "give a number from 0 on");
  }
  if (links.loss == LinkLoss::margin && options.label_smoothing > 0) {
    reject("the margin loss has no labels to smooth", "label_smoothing", "leave it out");
  }
}

void take_links(const Dataset& dataset, const TrainOptions& options, Problem& problem) {
  problem.outputs = options.links.embedding * (options.links.variational ? 2 : 1);
  problem.num_items = problem.graph.num_edges();
  problem.metric = options.metric == Metric::automatic ? Metric::roc_auc : options.metric;
  if (problem.graph.num_edges() == 0) {
    reject("the graph has no edges to learn from", problem.name, "use a graph with edges");
  }
  problem.num_sources = sources_of(dataset, options.links.kinds);
  require_pairs_without_edges(problem);
  problem.link_parts = parts_of(dataset, options);
  const bool once = check_link_parts(problem.graph, problem.link_parts);
  problem.split = split_of(problem.graph, problem.link_parts, once);
  const std::pair<const char*, const std::vector<std::int64_t>*> needed[] = {
      {"training", &problem.split.train}, {"validation", &problem.split.validation}};
  for (const auto& [name, part] : needed) {
    if (part->empty()) {
      reject(fmt::format("no links are for {}", name), problem.name,
             "give it a share of the edges");
    }
  }
  require_negatives(dataset, options, problem);
  note_links(options, once, problem);
}

}  // namespace tessera::train
