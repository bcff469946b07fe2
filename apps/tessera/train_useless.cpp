// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "train_options.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

/// True where a layer that is not the last puts out what its neighbour takes in.
bool has_residual(const nn::ModelConfig& config, std::int64_t features) {
  if (config.kind == nn::ModelKind::agnn) return false;
  const bool attends = config.kind == nn::ModelKind::gat || config.kind == nn::ModelKind::gatv2;
  // In doubles, since nobody has asked yet whether such a width makes sense.
  const double hidden =
      static_cast<double>(config.hidden) * (attends ? static_cast<double>(config.heads) : 1.0);
  const std::int64_t blocks = config.layers - (config.readout ? 0 : 1);
  return blocks > 1 || (blocks == 1 && static_cast<double>(features) == hidden);
}

}  // namespace

void reject_useless_options(const Arguments& app, const TrainArguments& a, const Dataset& dataset,
                            const TrainPlan& plan) {
  using nn::ModelKind;
  const nn::ModelConfig& config = plan.config;
  const train::TrainOptions& options = plan.options;
  const std::string model = std::string("for ") + nn::to_string(config.kind);
  const bool attends = config.kind == ModelKind::gat || config.kind == ModelKind::gatv2;
  const bool hops = config.kind == ModelKind::sgc || config.kind == ModelKind::cheb;
  const bool gin = config.kind == ModelKind::gin || config.kind == ModelKind::gine;
  const bool agnn = config.kind == ModelKind::agnn;
  const bool lightgcn = config.kind == ModelKind::lightgcn;
  const bool clusters = options.batching == train::Batching::clusters;
  const bool walks = options.batching == train::Batching::walks;
  const bool draws = options.batching == train::Batching::neighbours;
  const std::string without_draws = "without batches of neighbours";
  const std::string by_draws = "use --batch neighbours";
  const bool given_parts = !a.partition_file.empty();
  // A single layer puts out logits: nothing comes after it but the loss.
  const bool single = config.layers == 1 && !config.readout && !agnn && !lightgcn;
  const std::string one_layer = "for a model of one layer";
  const bool has_split =
      options.task != train::Task::links && !config.readout &&
      (!dataset.train.empty() || !dataset.validation.empty() || !dataset.test.empty());
  const std::int64_t features =
      dataset.num_features() > 0 ? dataset.num_features() : dataset.graph.num_rows();
  const bool decays =
      options.schedule == train::Schedule::steps || options.schedule == train::Schedule::plateau;
  const std::string without_decay =
      fmt::format("with a {} learning rate", train::to_string(options.schedule));
  const std::string by_decay = "use --schedule steps or plateau";
  const std::string by_clusters = "use --batch clusters";
  const bool explains = !a.explain.empty(), trains_nothing = explains || a.dry_run;
  const std::string only_says = explains ? "with --explain" : "with --dry-run";
  reject_useless(app, useless_beside(options));
  reject_useless(
      app,
      {{"--heads", !attends, model, "use --model gat or gatv2"},
       {"--heads", single, one_layer, "use --output-heads or --layers"},
       {"--output-heads", !attends, model, "use --model gat or gatv2"},
       {"--output-heads", config.readout.has_value(), "where graphs are classified", "use --heads"},
       {"--attention-dropout", !attends, model, "use --model gat or gatv2"},
       {"--huber-delta", options.numbers.loss != ops::NumberLoss::huber, "for another loss",
        "use --loss huber"},
       {"--hops", !hops, model, "use --model sgc or cheb"},
       {"--aggregation", config.kind != ModelKind::sage, model, "use --model sage"},
       {"--hidden", lightgcn, model, "use --embedding"},
       {"--dropout", lightgcn, model, ""},
       {"--input-dropout", lightgcn, model, ""},
       {"--normalise", lightgcn, model, ""},
       {"--activation", lightgcn, model, ""},
       {"--batch-norm", lightgcn, model, ""},
       {"--residual", lightgcn, model, ""},
       {"--hidden", single && !gin, one_layer, "use --layers"},
       {"--activation", single, one_layer, "use --layers"},
       {"--batch-norm", agnn, model, ""},
       {"--batch-norm", single, one_layer, "use --layers"},
       {"--residual", agnn, model, ""},
       {"--residual", !has_residual(config, features),
        "where no two neighbouring layers have one width", "use --layers 3"},
       {"--momentum", options.optimiser.kind != ops::OptimiserKind::sgd, "for adam and adamw",
        "use --optimiser sgd"},
       {"--decay-every", !decays, without_decay, by_decay},
       {"--decay-factor", !decays, without_decay, by_decay},
       {"--parts", !clusters, "without clusters", by_clusters},
       {"--parts", given_parts, "with --partition", ""},
       {"--method", !clusters, "without clusters", by_clusters},
       {"--method", given_parts, "with --partition", ""},
       {"--parts-per-batch", !clusters, "without clusters", by_clusters},
       {"--batch", given_parts && a.batch && *a.batch != "clusters", "with --partition",
        by_clusters},
       {"--pattern", attends || agnn || nn::reads_edges(config), model,
        "use --model gcn, sage, gin, sgc or cheb"},
       {"--batch-size", !draws && !walks, "without batches of neighbours or walks",
        "use --batch neighbours or walks"},
       {"--walk-length", !walks, "without batches of walks", "use --batch walks"},
       {"--fanout", !draws, without_draws, by_draws},
       {"--replace", !draws, without_draws, by_draws},
       {"--graphs-per-batch", options.batching != train::Batching::graphs,
        "without batches of graphs", "use --batch graphs"},
       {"--split", a.folds > 0, "with --folds", ""},
       {"--split-index", a.folds > 0, "with --folds", ""},
       {"--split-index", dataset.splits.empty(), "where the data has one split at most", ""},
       {"--split", has_split, "where the data has a split", "use --folds"},
       {"--checkpoint-every", a.checkpoint.empty(), "without --checkpoint",
        "name a file with --checkpoint"},
       {"--dry-run", explains, "with --explain", "give one of them"},
       {"--checkpoint", trains_nothing, only_says, ""},
       {"--save-data", trains_nothing, only_says, ""},
       {"--plot", trains_nothing, only_says, ""},
       {"--curve", trains_nothing, only_says, ""},
       {"--report", trains_nothing, only_says, ""},
       {"--report", a.parallel_runs, "with --parallel-runs, which keeps no weights",
        "run one after the other"},
       {"--parallel-runs", options.runs == 1, "for a single run", "use --runs"}});
}

}  // namespace tessera::app
