// SPDX-License-Identifier: Apache-2.0
#include "train_triples.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "curve.hpp"
#include "describe_triples.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/triples.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

constexpr const char* own_flags[] = {"--blocks", "--bases", "--edge-dropout", "--penalty"};
/// Of the options of `train`.
constexpr const char* known_flags[] = {"--data",
                                       "--task",
                                       "--model",
                                       "--layers",
                                       "--hidden",
                                       "--dropout",
                                       "--epochs",
                                       "--lr",
                                       "--weight-decay",
                                       "--runs",
                                       "--evaluate-every",
                                       "--early-stopping",
                                       "--negatives-per-link",
                                       "--pairs-per-batch",
                                       "--device",
                                       "--checkpoint"};

bool is_known(const Arguments& app, const Option& option) {
  const auto is_option = [&](const char* flag) { return app.find(flag) == &option; };
  return option.group() == "Common options" ||
         std::any_of(std::begin(own_flags), std::end(own_flags), is_option) ||
         std::any_of(std::begin(known_flags), std::end(known_flags), is_option);
}

void reject_other_options(const Arguments& app) {
  for (const auto& option : app.options()) {
    if (!option->is_given() || is_known(app, *option)) continue;
    throw UselessOption(ErrorCode::invalid_argument, "does nothing where triples are learned",
                        option->names().back(), "leave it out");
  }
}

/// The number of layers of a model: DistMult has none.
std::int64_t layers_of(const Arguments& app, const TrainArguments& a, std::int64_t otherwise) {
  const std::string model = app.is_given("--model") ? a.model : "rgcn";
  if (model == "rgcn") {
    if (a.layers.value_or(1) >= 1) return a.layers.value_or(otherwise);
    throw Error(ErrorCode::invalid_argument, fmt::format("{} layers of R-GCN", *a.layers),
                "--layers", "give at least one, or use --model distmult");
  }
  if (model != "distmult") {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no model of triples", model),
                "--model", "use rgcn or distmult");
  }
  for (const char* flag : {"--layers", "--dropout", "--blocks", "--bases", "--edge-dropout"}) {
    reject_useless(app, {{flag, true, "for distmult, which has no layers", "use --model rgcn"}});
  }
  return 0;
}

train::TripleOptions options_of(const Arguments& app, const TrainArguments& a,
                                const TripleArguments& triples) {
  train::TripleOptions options;
  nn::TripleModelOptions& model = options.model;
  model.layers = layers_of(app, a, model.layers);
  override_with(a.hidden, model.width);
  override_with(a.dropout, model.dropout);
  override_with(triples.penalty, model.penalty);
  // Blocks of 5 x 5, as the paper has them, where the width allows it.
  model.blocks = triples.bases ? 1 : model.width % 5 == 0 ? model.width / 5 : 1;
  override_with(triples.blocks, model.blocks);
  override_with(triples.bases, model.bases);
  override_with(a.epochs, options.epochs);
  override_with(a.learning_rate, options.optimiser.learning_rate);
  override_with(a.weight_decay, options.optimiser.weight_decay);
  override_with(a.evaluate_every, options.evaluate_every);
  override_with(a.early_stopping, options.patience);
  override_with(a.links.per_positive, options.negatives);
  override_with(a.links.pairs_per_batch, options.triples_per_step);
  override_with(triples.edge_dropout, options.edge_dropout);
  options.placement.memory = &default_memory(checked_device(a.device));
  return options;
}

/// Which run of how many.
struct RunNumber {
  std::int64_t run = 0, runs = 1;
};

/// The live line: where the training is and how it does.
std::function<void(const train::TripleEpoch&)> epoch_line(Session& session, const RunNumber& number,
                                                          const train::TripleOptions& options) {
  return [&session, number, epochs = options.epochs](const train::TripleEpoch& record) {
    const std::string run =
        number.runs > 1 ? fmt::format("run {}/{}  ", number.run + 1, number.runs) : "";
    const std::string validation =
        record.evaluated ? fmt::format("  validation MRR {:.4f}", record.validation) : "";
    session.progress()(
        fmt::format("{}epoch {}  loss {:.4f}{}", run, record.epoch, record.loss, validation),
        number.run * epochs + record.epoch, number.runs * epochs);
  };
}

/// What all runs reached: filtered mean reciprocal ranks, by consecutive seeds that begin with
/// `--seed`.
struct TripleRuns {
  std::vector<train::TripleReport> reports = {};
  std::int64_t best = 0;  ///< on validation, the first among equals

  bool several() const { return reports.size() > 1; }
};

train::TripleResult fit_runs(Session& session, const KnowledgeGraph& graph,
                             train::TripleOptions options, std::int64_t runs, TripleRuns& all) {
  if (runs < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} runs", runs), "--runs",
                "give at least one");
  }
  train::TripleResult best;
  const std::uint64_t first = options.seed;
  for (std::int64_t run = 0; run < runs; ++run) {
    options.seed = first + static_cast<std::uint64_t>(run);
    train::TripleResult result =
        train::fit_triples(graph, options, epoch_line(session, {run, runs}, options));
    const double reached = result.report.validation.filtered.mean_reciprocal_rank;
    all.reports.push_back(result.report);
    if (run > 0 && reached <= best.report.validation.filtered.mean_reciprocal_rank) continue;
    all.best = run;
    best = std::move(result);
  }
  return best;
}

/// "MRR 0.2412 ± 0.0009" of one part of the data.
std::string spread_text(const TripleRuns& all,
                        const train::TripleQuality train::TripleReport::*of) {
  std::vector<double> values;
  for (const train::TripleReport& report : all.reports) {
    values.push_back((report.*of).filtered.mean_reciprocal_rank);
  }
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return fmt::format("MRR {:.4f} {} {:.4f}", mean, utf8_output() ? "±" : "+-", deviation);
}

Json runs_json(const TripleRuns& all, std::uint64_t seed) {
  Json json = Json::array();
  for (std::size_t run = 0; run < all.reports.size(); ++run) {
    const train::TripleReport& report = all.reports[run];
    json.push_back({{"seed", seed + run},
                    {"epochs", report.curve.size()},
                    {"best_epoch", report.best_epoch},
                    {"validation", report.validation.filtered.mean_reciprocal_rank},
                    {"test", report.test.ranks > 0 ? Json(report.test.filtered.mean_reciprocal_rank)
                                                   : Json()}});
  }
  return json;
}

std::string quality_text(const train::RankQuality& quality) {
  return fmt::format("MRR {:.4f}, hits@1 {:.2f} %, hits@3 {:.2f} %, hits@10 {:.2f} %",
                     quality.mean_reciprocal_rank, quality.hits_at_1 * 100, quality.hits_at_3 * 100,
                     quality.hits_at_10 * 100);
}

Json quality_json(const train::RankQuality& quality) {
  return {{"mrr", quality.mean_reciprocal_rank},
          {"hits_at_1", quality.hits_at_1},
          {"hits_at_3", quality.hits_at_3},
          {"hits_at_10", quality.hits_at_10}};
}

Json quality_json(const train::TripleQuality& quality) {
  return {{"filtered", quality_json(quality.filtered)},
          {"raw", quality_json(quality.raw)},
          {"ranks", quality.ranks}};
}

std::string text_of(const TrainArguments& a, const KnowledgeGraph& graph, const TripleRuns& all,
                    const train::TripleReport& report) {
  Table table("ll");
  table.add({"model", report.model});
  table.add({"parameters", grouped(report.parameters)});
  if (all.several()) {
    const std::string runs = fmt::format(", filtered, over {} runs", all.reports.size());
    if (report.test.ranks > 0) {
      table.add({"test of all", spread_text(all, &train::TripleReport::test) + runs});
    }
    table.add({"validation of all", spread_text(all, &train::TripleReport::validation) + runs});
    table.add({"the rest", fmt::format("of run {}, the best on validation", all.best + 1)});
  }
  if (report.test.ranks > 0) {
    table.add({"test, filtered", quality_text(report.test.filtered) + " at the best epoch"});
    table.add({"test, raw", quality_text(report.test.raw)});
  }
  table.add({"validation", quality_text(report.validation.filtered) + ", filtered"});
  table.add({"epochs", fmt::format("{}, the best is {}", report.curve.size(), report.best_epoch)});
  table.add({"time", human_seconds(report.seconds)});
  if (!a.checkpoint.empty()) table.add({"checkpoint", a.checkpoint});
  return headline(graph) + "\n" + table.text();
}

Json json_of(const TrainArguments& a, const KnowledgeGraph& graph,
             const train::TripleOptions& options, const TripleRuns& all,
             const train::TripleReport& report) {
  Json json{{"verb", "train"}, {"source", a.data.source}};
  json.update(brief_json(graph));
  json["task"] = "triples";
  json["model"] = options.model.layers == 0 ? "distmult" : "rgcn";
  json["device"] = to_string(options.placement.device());
  json["threads"] = num_threads();
  json["layers"] = report.model;
  json["parameters"] = report.parameters;
  json["test"] = report.test.ranks > 0 ? quality_json(report.test) : Json();
  json["validation"] = quality_json(report.validation);
  json["best_epoch"] = report.best_epoch;
  json["seconds"] = report.seconds;
  Json curve = Json::array();
  for (const train::TripleEpoch& epoch : report.curve) {
    curve.push_back({{"epoch", epoch.epoch},
                     {"loss", epoch.loss},
                     {"seconds", epoch.seconds},
                     {"validation", epoch.evaluated ? Json(epoch.validation) : Json()}});
  }
  json["curve"] = curve;
  if (all.several()) json["runs"] = runs_json(all, options.seed);
  if (!a.checkpoint.empty()) json["checkpoint"] = a.checkpoint;
  return json;
}

}  // namespace

void add_triple_options(Arguments& app, TripleArguments& a) {
  const std::string group = "Triples (--task triples) and kinds of vertices";
  app.add_option("--blocks", a.blocks,
                 "rgcn: a relation's weight is so many blocks on the diagonal (default: of triples "
                 "as many as make them 5 x 5, else one)")
      ->type_name("N")
      ->group(group);
  app.add_option("--bases", a.bases, "rgcn: a relation's weight is a sum of so many bases instead")
      ->type_name("N")
      ->group(group);
  app.add_option("--edge-dropout", a.edge_dropout,
                 "triples: share of the training triples that carry no messages in a step (default "
                 "0.5)")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--penalty", a.penalty,
                 "triples: what the mean square of embeddings counts in the loss (default 0.01)")
      ->type_name("RATE")
      ->group(group);
}

void reject_triple_options(const Arguments& app) {
  for (const char* flag : own_flags) {
    reject_useless(app, {{flag, true, "where no triples are learned", "use --task triples"}});
  }
}

ExitCode train_triples(Session& session, const Arguments& app, const TrainArguments& arguments,
                       const TripleArguments& triples) {
  reject_other_options(app);
  train::TripleOptions options = options_of(app, arguments, triples);
  options.seed = session.seed();
  options.progress = session.progress();
  const KnowledgeGraph graph = load_triples(session, arguments.data.source);
  session.stage("preparing");
  TripleRuns all;
  train::TripleResult result = fit_runs(session, graph, options, arguments.runs.value_or(1), all);
  session.results_are_complete();
  session.add_notes(result.report.notes);
  const train::TripleReport report = result.report;
  if (!arguments.checkpoint.empty()) {
    train::save(
        train::TripleKnowledge{report.model, graph.entities, graph.relations,
                               std::make_shared<const Matrix<float>>(std::move(result.entities)),
                               std::make_shared<const Matrix<float>>(std::move(result.relations))},
        arguments.checkpoint);
  }
  session.deliver(text_of(arguments, graph, all, report),
                  json_of(arguments, graph, options, all, report));
  return ExitCode::ok;
}

}  // namespace tessera::app
