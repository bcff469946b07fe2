// SPDX-License-Identifier: Apache-2.0
#include "train_options.hpp"

#include <algorithm>
#include <limits>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "partition_file.hpp"
#include "tessera/core/error.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::app {
namespace {

void add_model_options(CLI::App& app, TrainArguments& a) {
  const std::string group = "Model options (default: as in the model's paper)";
  app.add_option("-m,--model", a.model, "gcn, sage, gin, gat, gatv2, agnn, sgc or cheb")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--layers", a.layers, "convolutions; for agnn, propagations")
      ->type_name("N")
      ->group(group);
  app.add_option("--hidden", a.hidden, "width between layers; of each head for gat and gatv2")
      ->type_name("N")
      ->group(group);
  app.add_option("--heads", a.heads, "gat, gatv2: heads of all layers but the last")
      ->type_name("N")
      ->group(group);
  app.add_option("--output-heads", a.output_heads, "gat, gatv2: heads of the last, averaged")
      ->type_name("N")
      ->group(group);
  app.add_option("--hops", a.hops, "sgc, cheb: K")->type_name("K")->group(group);
  app.add_option("--dropout", a.dropout, "on features and between layers")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--input-dropout", a.input_dropout, "on features alone")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--attention-dropout", a.attention_dropout, "gat, gatv2: on attention weights")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--aggregation", a.aggregation, "sage: mean, max or gcn")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--activation", a.activation, "none, relu, leaky_relu or elu")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--readout", a.readout, "graphs: sum, mean or max over their vertices")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--batch-norm", a.batch_norm, "batch norm between layers")->group(group);
  app.add_flag("--residual", a.residual, "add the input of a layer to its output where they fit")
      ->group(group);
  app.add_flag("--precompute", a.precompute,
               "propagate the features once, before training (sgc, or gcn without input dropout)")
      ->group(group);
}

void add_training_options(CLI::App& app, TrainArguments& a) {
  const std::string group = "Training options (default: as in the model's paper)";
  app.add_option("-e,--epochs", a.epochs, "at most so many")->type_name("N")->group(group);
  app.add_option("--lr", a.learning_rate, "learning rate")->type_name("RATE")->group(group);
  app.add_option("--weight-decay", a.weight_decay, "of the parameters that decay")
      ->type_name("RATE")
      ->group(group);
  app.add_option("--optimiser", a.optimiser, "adam, adamw or sgd")
      ->type_name("NAME")
      ->check(CLI::IsMember({"adam", "adamw", "sgd"}))
      ->group(group);
  app.add_option("--momentum", a.momentum, "sgd")->type_name("M")->group(group);
  app.add_option("--evaluate-every", a.evaluate_every,
                 "epochs from one evaluation to the next (default 1)")
      ->type_name("N")
      ->group(group);
  app.add_option("--early-stopping", a.early_stopping,
                 "stop after so many epochs without progress on the validation items; 0 is never")
      ->type_name("N")
      ->group(group);
  app.add_option("--batch", a.batch, "what a step sees: full, clusters or graphs")
      ->type_name("KIND")
      ->group(group);
  app.add_option("--parts", a.parts, "clusters: how many to make (default 16)")
      ->type_name("K")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{std::numeric_limits<std::int32_t>::max()}))
      ->group(group);
  app.add_option("--parts-per-batch", a.parts_per_batch, "clusters: how many a step sees")
      ->type_name("N")
      ->group(group);
  app.add_option("--partition", a.partition_file, "clusters: read them instead of making them")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--method", a.method, "clusters: auto, metis, grow or contiguous")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "metis", "grow", "contiguous"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--graphs-per-batch", a.graphs_per_batch, "graphs: how many a step sees")
      ->type_name("N")
      ->group(group);
}

void add_task_options(CLI::App& app, TrainArguments& a) {
  const std::string group = "Data and evaluation";
  app.add_option("--task", a.task, "classify node or graph; auto: graphs where they have labels")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--metric", a.metric, "accuracy, micro_f1, roc_auc or auto")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--normalise", a.normalise,
                 "divide each row of features by its sum: on, off, or auto (on for vertices whose "
                 "features are never negative)")
      ->type_name("CHOICE")
      ->capture_default_str()
      ->group(group);
  app.add_option("--split", a.split,
                 "shares for training, validation and test, where the data has no split "
                 "(default 0.6,0.2,0.2)")
      ->type_name("A,B,C")
      ->group(group);
  app.add_option("--folds", a.folds, "cross-validation: each run is tested on another fold")
      ->type_name("K")
      ->group(group);
}

void add_run_options(CLI::App& app, TrainArguments& a) {
  app.add_option("-n,--runs", a.runs,
                 "train so often, each time with the next seed (default 1, or one for each fold)")
      ->type_name("N");
  app.add_flag("--parallel-runs", a.parallel_runs,
               "as many runs at a time as there are threads, one thread each");
  app.add_option("--device", a.device, "cpu or cuda")->type_name("NAME")->capture_default_str();
  app.add_option("-c,--checkpoint", a.checkpoint, "file for the state of the training")
      ->type_name("FILE");
  app.add_option("--checkpoint-every", a.checkpoint_every, "epochs between two checkpoints")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--resume", a.resume, "go on from the checkpoint, if there is one");
  app.add_flag("--dry-run", a.dry_run, "say what memory it would take, and do nothing");
  app.add_flag("--curve", a.curve, "draw loss and metric over the epochs");
}

template <class Value, class Target>
void override_with(const std::optional<Value>& given, Target& target) {
  if (given) target = *given;
}

train::SplitShares parse_split(const std::string& text) {
  std::vector<double> shares;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    std::istringstream number(part);
    double share = 0;
    if (!(number >> share) || !number.eof()) break;
    shares.push_back(share);
  }
  if (shares.size() != 3 || std::count(text.begin(), text.end(), ',') != 2) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no split", text), "--split",
                "give three shares, such as 0.6,0.2,0.2");
  }
  return {shares[0], shares[1], shares[2]};
}

ops::OptimiserKind parse_optimiser(const std::string& text) {
  if (text == "sgd") return ops::OptimiserKind::sgd;
  return text == "adamw" ? ops::OptimiserKind::adamw : ops::OptimiserKind::adam;
}

void apply_model_options(const TrainArguments& a, nn::ModelConfig& config) {
  override_with(a.layers, config.layers);
  override_with(a.hidden, config.hidden);
  override_with(a.heads, config.heads);
  override_with(a.output_heads, config.output_heads);
  override_with(a.hops, config.hops);
  override_with(a.dropout, config.dropout);
  override_with(a.dropout, config.input_dropout);
  override_with(a.input_dropout, config.input_dropout);
  override_with(a.attention_dropout, config.attention_dropout);
  if (a.aggregation) config.aggregation = nn::parse_sage_aggregation(*a.aggregation);
  if (a.activation) config.activation = ops::parse_activation(*a.activation);
  if (a.readout) config.readout = ops::parse_reduction(*a.readout);
  if (a.batch_norm) config.batch_norm = true;
  if (a.residual) config.residual = true;
  if (a.precompute) config.precomputed = true;
}

void apply_training_options(const TrainArguments& a, train::TrainOptions& options) {
  override_with(a.epochs, options.epochs);
  override_with(a.evaluate_every, options.evaluate_every);
  override_with(a.early_stopping, options.patience);
  override_with(a.learning_rate, options.optimiser.learning_rate);
  override_with(a.weight_decay, options.optimiser.weight_decay);
  override_with(a.momentum, options.optimiser.momentum);
  if (a.optimiser) options.optimiser.kind = parse_optimiser(*a.optimiser);
  if (a.batch) options.batching = train::parse_batching(*a.batch);
  override_with(a.parts, options.parts);
  override_with(a.parts_per_batch, options.parts_per_batch);
  override_with(a.graphs_per_batch, options.graphs_per_batch);
  options.partition_method = a.method;
  options.task = train::parse_task(a.task);
  options.metric = train::parse_metric(a.metric);
  options.row_normalise = train::parse_row_normalise(a.normalise);
  if (!a.split.empty()) options.split = parse_split(a.split);
  options.folds = a.folds;
  options.runs = a.runs.value_or(std::max<std::int64_t>(a.folds, 1));
  options.parallel_runs = a.parallel_runs;
  options.checkpoint = {a.checkpoint, a.checkpoint_every, a.resume};
}

}  // namespace

void add_train_options(CLI::App& app, TrainArguments& arguments) {
  add_data_options(app, arguments.data);
  add_run_options(app, arguments);
  add_model_options(app, arguments);
  add_training_options(app, arguments);
  add_task_options(app, arguments);
  add_planning_options(app, arguments.planning);
}

Device checked_device(const std::string& name) {
  const Device device = parse_device(name);
  require_available(device);
  return device;
}

void require_sense(const TrainArguments& arguments) {
  checked_device(arguments.device);
  nn::parse_model_kind(arguments.model);
  if (arguments.resume && arguments.checkpoint.empty()) {
    throw Error(ErrorCode::invalid_argument, "--resume without a checkpoint", "",
                "name the file with --checkpoint");
  }
  train::TrainOptions options;
  apply_training_options(arguments, options);
  train::validate(options);
}

std::vector<FileUse> files_of(const TrainArguments& arguments) {
  const FileRole role = arguments.resume ? FileRole::state : FileRole::output;
  return {source_file(arguments.data.source),
          {"--partition", arguments.partition_file, FileRole::input},
          {"--checkpoint", arguments.dry_run ? "" : arguments.checkpoint, role},
          plans_file(arguments.planning)};
}

TrainPlan plan_training(const TrainArguments& arguments, const Dataset& dataset,
                        std::uint64_t seed) {
  const nn::ModelKind kind = nn::parse_model_kind(arguments.model);
  const bool graph_task = train::is_graph_task(dataset, train::parse_task(arguments.task));
  TrainPlan plan{nn::paper_defaults(kind, dataset.name, graph_task),
                 train::paper_options(kind, dataset.name, graph_task)};
  apply_model_options(arguments, plan.config);
  apply_training_options(arguments, plan.options);
  plan.options.seed = seed;
  plan.options.placement.memory = &default_memory(checked_device(arguments.device));
  plan.options.plans = arguments.planning.options();
  if (!arguments.partition_file.empty()) {
    plan.options.batching = train::Batching::clusters;
    plan.options.partition =
        read_partition_file(arguments.partition_file, dataset.graph.num_rows());
  }
  return plan;
}

}  // namespace tessera::app
