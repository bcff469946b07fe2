// SPDX-License-Identifier: Apache-2.0
#include "predict_links.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "describe.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/io/vertex_list.hpp"
#include "tessera/train/link_predictor.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

/// Those of a file, or all that lists may be made for.
std::vector<VertexId> vertices_of(const LinkQuestion& question, const Dataset& dataset,
                                  const Kinds& kinds) {
  if (!question.links.vertices.empty()) {
    return io::read_vertices(question.links.vertices, dataset, {question.data.tables.base, kinds});
  }
  const VertexId count =
      kinds.given() ? num_of_first_kind(dataset.vertex_names, kinds) : dataset.graph.num_rows();
  std::vector<VertexId> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), VertexId{0});
  return all;
}

/// The pairs of a file with their scores, or the best of each vertex.
train::LinkPrediction answer(const LinkQuestion& question, const Dataset& dataset,
                             const Kinds& kinds, train::LinkPredictor& predictor) {
  train::LinkPrediction answer;
  if (question.links.top) {
    const std::vector<VertexId> sources = vertices_of(question, dataset, kinds);
    answer = train::listed_links(
        dataset, sources, predictor.top(sources, *question.links.top, question.links.keeps_known));
  } else {
    io::VertexPairs pairs =
        io::read_vertex_pairs(question.links.pairs, dataset, {question.data.tables.base, kinds});
    answer.names = dataset.vertex_names;
    answer.pairs = {std::move(pairs.sources), std::move(pairs.targets)};
    answer.scores = predictor.scores(answer.pairs);
  }
  answer.first_number = question.data.tables.base;
  answer.kinds = kinds;
  return answer;
}

void write_embeddings(const std::string& path, const Dataset& dataset,
                      const train::LinkPredictor& predictor) {
  train::Prediction named;
  named.item_names = dataset.vertex_names;
  const Matrix<float>& rows = predictor.embeddings();
  named.embeddings = Matrix<float>(rows.rows(), rows.cols());
  std::copy_n(rows.data(), rows.size(), named.embeddings.data());
  train::save_embeddings(named, path);
}

}  // namespace

void add_link_options(Arguments& app, PredictLinks& links) {
  const std::string group = "Links, of a model of --task links";
  app.add_option("--links", links.pairs,
                 "score the pairs of this file: a source and a target on each line, by the names "
                 "of the data")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--top", links.top,
                 "list the K vertices that a vertex most likely has an edge to, without those that "
                 "it has one to")
      ->type_name("K")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 30))
      ->group(group);
  app.add_option("--for", links.vertices,
                 "with --top: the vertices that get a list, one on each line (default: all)")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--keep-known", links.keeps_known, "with --top: list edges of the data, too")
      ->group(group);
}

std::vector<FileUse> uses_of(const PredictLinks& links) {
  return {{"--links", links.pairs, FileRole::input}, {"--for", links.vertices, FileRole::input}};
}

void require_sense(const Arguments& app, const LinkQuestion& question,
                   const train::Checkpoint& checkpoint) {
  const PredictLinks& links = question.links;
  const bool lists = links.top.has_value();
  reject_useless(app, {{"--for", !lists, "without --top", "give --top K"},
                       {"--keep-known", !lists, "without --top", "give --top K"},
                       {"--links", lists, "with --top", "ask for one of them"}});
  if (!checkpoint.decoder) {
    if (!links.asked()) return;
    reject("the model predicts classes, not links", question.checkpoint,
           "train one with --task links, or leave --links and --top out");
  }
  for (const char* name : {"--report", "--short", "--bits", "--rounded", "--calibrate", "--ranges",
                           "--quantised", "--parts", "--partition"}) {
    reject_useless(app, {{name, true, "for a model of links", ""}});
  }
  if (!links.asked() && question.embeddings.empty()) {
    reject("the model predicts links, but nothing says which", question.checkpoint,
           "give --links FILE with pairs, --top K for lists, or --embeddings FILE");
  }
  if (!links.asked() && !question.output.empty()) {
    reject("nothing says which links to write", "--output",
           "give --links FILE with pairs, or --top K for lists");
  }
  if (!question.output.empty()) train::require_link_ending(question.output);
}

ExitCode predict_links(Session& session, const LinkQuestion& question, const Dataset& dataset,
                       const train::Checkpoint& checkpoint, const train::PredictOptions& options) {
  session.stage("predicting");
  reset_memory_peak(options.placement.device());
  train::LinkPredictor predictor(checkpoint, dataset, options);
  session.add_notes(predictor.notes());
  const bool asked = question.links.asked();
  const train::LinkPrediction links =
      asked ? answer(question, dataset, checkpoint.kinds, predictor) : train::LinkPrediction();
  session.stage("writing");
  if (!question.output.empty()) train::save(links, question.output);
  if (!question.embeddings.empty()) write_embeddings(question.embeddings, dataset, predictor);
  const std::int64_t peak_bytes = memory_use(options.placement.device()).peak_bytes;

  Table table("ll");
  table.add({"model", fmt::format("{}, decoder {}", nn::describe(checkpoint.model),
                                  nn::to_string(*checkpoint.decoder))});
  const train::BestEpoch best = train::best_epoch(checkpoint);
  table.add({"weights", fmt::format("of run {}, epoch {}", best.run + 1, best.epoch)});
  if (asked) table.add({"pairs", grouped(links.pairs.size())});
  table.add({"peak memory", human_bytes(peak_bytes)});
  Json json{{"verb", "predict"}, {"source", question.data.source}};
  json.update(brief_json(dataset));
  json["checkpoint"] = question.checkpoint;
  json["model"] = nn::to_string(checkpoint.model.kind);
  json["task"] = "links";
  json["decoder"] = nn::to_string(*checkpoint.decoder);
  if (asked) json["pairs"] = links.pairs.size();
  json["peak_memory_bytes"] = peak_bytes;
  for (const auto& [key, path] :
       {std::pair("output", question.output), std::pair("embeddings", question.embeddings)}) {
    if (path.empty()) continue;
    table.add({"written", path});
    json[key] = path;
  }
  session.deliver(headline(dataset) + "\n" + table.text(), json);
  return ExitCode::ok;
}

}  // namespace tessera::app
