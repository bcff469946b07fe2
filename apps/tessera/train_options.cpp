// SPDX-License-Identifier: Apache-2.0
#include "train_options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "class_report.hpp"
#include "partition_file.hpp"
#include "picture/picture.hpp"
#include "tessera/core/error.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::app {
namespace {

void add_model_options(Arguments& app, TrainArguments& a) {
  const std::string group = model_group;
  app.add_option(
         "-m,--model", a.model,
         "gcn, sage, gin, gat, gatv2, agnn, sgc or cheb; where edges have features gine; for links "
         "lightgcn, too; for triples rgcn (the default there) or distmult; for a folder of kinds "
         "of "
         "vertices rgcn (the default there), sage or gat")
      ->type_name("NAME")
      ->check(offers({"gcn", "sage", "gin", "gine", "gat", "gatv2", "agnn", "sgc", "cheb",
                      "lightgcn", "rgcn", "distmult"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--layers", a.layers, "number of layers; for agnn, of propagations")
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
  app.add_option("--hops", a.hops, "sgc, cheb: how many steps away neighbours count")
      ->type_name("K")
      ->group(group);
  app.add_option("--dropout", a.dropout,
                 "share of values dropped in training, on features and between layers")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--input-dropout", a.input_dropout, "dropout on features alone")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--attention-dropout", a.attention_dropout,
                 "gat, gatv2: dropout on attention weights")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--aggregation", a.aggregation, "sage: mean, max or gcn")
      ->type_name("NAME")
      ->check(offers({"mean", "max", "gcn"}))
      ->group(group);
  app.add_option("--activation", a.activation, "between layers: none, relu, leaky_relu or elu")
      ->type_name("NAME")
      ->check(offers({"none", "relu", "leaky_relu", "elu"}))
      ->group(group);
  app.add_option("--readout", a.readout, "to classify graphs: sum, mean or max over their vertices")
      ->type_name("NAME")
      ->check(offers({"sum", "mean", "max"}))
      ->group(group);
  app.add_option("--bits", a.bits,
                 "gcn, gin: train for so many bits of weights, features and activations, 1 to 16; "
                 "one number, or one for each layer (8,4,8)")
      ->type_name("B")
      ->group(group);
  app.add_flag("--batch-norm", a.batch_norm, "batch norm between layers")->group(group);
  app.add_flag("--residual", a.residual, "add the input of a layer to its output where they fit")
      ->group(group);
  app.add_flag("--precompute", a.precompute,
               "propagate the features once, before training (sgc, or gcn without input dropout)")
      ->group(group);
}

void add_training_options(Arguments& app, TrainArguments& a) {
  const std::string group = training_group;
  app.add_option("-e,--epochs", a.epochs, "maximum number of epochs")->type_name("N")->group(group);
  app.add_option("--lr", a.learning_rate, "learning rate")->type_name("RATE")->group(group);
  app.add_option("--weight-decay", a.weight_decay, "weight decay (L2 penalty)")
      ->type_name("RATE")
      ->group(group);
  app.add_option("--optimiser", a.optimiser, "adam, adamw or sgd")
      ->type_name("NAME")
      ->check(one_of({"adam", "adamw", "sgd"}))
      ->group(group);
  app.add_option("--momentum", a.momentum, "sgd: momentum")->type_name("M")->group(group);
  app.add_option("--schedule", a.schedule,
                 "how the learning rate goes on: constant, steps (times --decay-factor every "
                 "--decay-every epochs), cosine (half a wave down to 0), or plateau (as steps, "
                 "after so many epochs without progress)")
      ->type_name("NAME")
      ->check(offers({"constant", "steps", "cosine", "plateau"}))
      ->group(group);
  app.add_option("--decay-every", a.decay_every,
                 "steps, plateau: number of epochs (default 50 and 10)")
      ->type_name("N")
      ->group(group);
  app.add_option("--decay-factor", a.decay_factor, "steps, plateau: factor (default 0.5)")
      ->type_name("FACTOR")
      ->group(group);
  app.add_option("--warm-up", a.warm_up, "epochs over which the learning rate rises to what it is")
      ->type_name("N")
      ->group(group);
  app.add_option("--clip-gradients", a.clip_gradients,
                 "scale gradients down to this norm, all together")
      ->type_name("NORM")
      ->group(group);
  app.add_option("--average-weights", a.average_weights,
                 "evaluate and keep the mean of the weights over the steps, of which each counts "
                 "DECAY times as much as the next, such as 0.99; 1 is a plain mean")
      ->type_name("DECAY")
      ->group(group);
  app.add_option(
         "--class-weights", a.class_weights,
         "what items of a class count in the loss: none, balanced (the rarer, the more), or "
         "weights such as spam=5,ham=1")
      ->type_name("WEIGHTS")
      ->check(offers({"none", "balanced"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--label-smoothing", a.label_smoothing,
                 "share of what the loss wants of a label that goes to all classes alike")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--rows-at-a-time", a.rows_at_a_time,
                 "evaluate layer by layer, over N vertices at a time, which takes less memory")
      ->type_name("N")
      ->group(group);
  app.add_option("--evaluate-every", a.evaluate_every, "evaluate every N epochs (default 1)")
      ->type_name("N")
      ->group(group);
  app.add_option("--early-stopping", a.early_stopping,
                 "stop after N epochs without progress on the validation part; 0 is never")
      ->type_name("N")
      ->group(group);
  app.add_option("--stop-by", a.stop_by,
                 "what progress is, and the best epoch: loss, metric (--metric), or either, where "
                 "the metric tells the best epoch")
      ->type_name("NAME")
      ->check(offers({"either", "metric", "loss"}))
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--batch", a.batch,
         "what a step trains on: full (the whole graph), clusters (parts of it), neighbours "
         "(some vertices, with neighbours drawn for each layer), walks (what walks from some "
         "vertices meet) or graphs")
      ->type_name("KIND")
      ->check(offers({"full", "clusters", "neighbours", "walks", "graphs"}))
      ->group(group);
  app.add_option("--parts", a.parts, "clusters: number of parts to make (default 16)")
      ->type_name("K")
      ->check(between(std::int64_t{1}, std::int64_t{std::numeric_limits<std::int32_t>::max()}))
      ->group(group);
  app.add_option("--parts-per-batch", a.parts_per_batch, "clusters: number of parts in a step")
      ->type_name("N")
      ->group(group);
  app.add_option("--partition", a.partition_file,
                 "clusters: read the parts from this file: line i holds the part of vertex i")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--method", a.method,
                 "clusters: how to make the parts: auto, multilevel, metis or contiguous")
      ->type_name("NAME")
      ->check(one_of({"auto", "multilevel", "metis", "contiguous"}))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--process-every-step", a.process_every_step,
               "full: take the graph for a new one in every step, processed and planned again")
      ->group(group);
  app.add_option(
         "--pattern", a.pattern,
         "reorder the vertices, of each batch on its own, to fit sparse tensor cores: V:2:M "
         "such as 1:2:4 or 16:2:16, best (least predicted time), auto (1:2:4 where it is "
         "expected to pay) or off")
      ->type_name("PATTERN")
      ->check(offers({"off", "auto", "best", "1:2:4", "16:2:16"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--batch-size", a.batch_size,
                 "neighbours: number of vertices that a step is trained on; walks: that it walks "
                 "from (default 1024)")
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--fanout", a.fan_outs,
         "neighbours: how many each vertex draws, the last layer first, such as 15,10,5, or "
         "one number for all layers; -1 is all (default 10)")
      ->type_name("N,...")
      ->group(group);
  app.add_option("--walk-length", a.walk_length, "walks: number of steps of a walk (default 2)")
      ->type_name("N")
      ->group(group);
  app.add_flag("--replace", a.replace, "neighbours: draw with replacement")->group(group);
  app.add_option("--graphs-per-batch", a.graphs_per_batch, "graphs: number of graphs in a step")
      ->type_name("N")
      ->group(group);
}

void add_task_options(Arguments& app, TrainArguments& a) {
  const std::string group = "Data and evaluation";
  app.add_option("--task", a.task,
                 "what to learn: classes of vertices (node) or graphs (graph), which pairs of "
                 "vertices are edges (links), numbers of vertices or graphs (numbers), which facts "
                 "(head, relation, tail) are true (triples), or auto: graphs where they have "
                 "labels, else node; numbers where there are no classes")
      ->type_name("NAME")
      ->check(offers({"auto", "node", "graph", "links", "numbers", "triples"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--huber-delta", a.huber_delta,
                 "numbers, --loss huber: differences from this on count in proportion instead of "
                 "by their square (default 1)")
      ->type_name("D")
      ->group(group);
  app.add_flag("--raw-targets", a.raw_targets,
               "numbers: learn them in their units, not brought to mean 0 and deviation 1")
      ->group(group);
  app.add_option(
         "--metric", a.metric,
         "what to report and to choose the best epoch by: accuracy, micro_f1 (several "
         "labels), macro_f1, weighted_f1, roc_auc, average_precision; of links also recall and "
         "ndcg (of lists); of numbers rmse, mae or r2; or auto: as the labels need")
      ->type_name("NAME")
      ->check(offers({"auto", "accuracy", "micro_f1", "macro_f1", "weighted_f1", "roc_auc",
                      "average_precision", "recall", "ndcg", "rmse", "mae", "r2"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--normalise", a.normalise,
                 "features: off (as they are), rows (each divided by its sum), standard (each "
                 "column to mean 0 and deviation 1), or auto (for vertices: standard of a table's "
                 "columns, rows of other features that are never negative; else off); of edges the "
                 "same, but in auto only a table's columns")
      ->type_name("CHOICE")
      ->check(offers({"auto", "off", "rows", "standard"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--split", a.split,
                 "shares for training, validation and test, where the data has no split "
                 "(default 0.6,0.2,0.2; of links 0.85,0.05,0.1)")
      ->type_name("A,B,C")
      ->group(group);
  app.add_option("--split-index", a.split_index,
                 "data with several splits: use number K of them, from 0, or all: --runs on each "
                 "(default: the first, and with --runs one after the other)")
      ->type_name("K|all")
      ->group(group);
  app.add_option("--folds", a.folds,
                 "cross-validation with K folds: each run is tested on another fold")
      ->type_name("K")
      ->group(group);
}

void add_run_options(Arguments& app, TrainArguments& a) {
  app.add_option("-n,--runs", a.runs,
                 "number of runs, each with the next seed (default 1, or one for each fold; with "
                 "--split-index all so many for each split)")
      ->type_name("N");
  app.add_option("--device", a.device, "cpu or cuda")
      ->type_name("NAME")
      ->check(offers({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--precision", a.precision,
                 "fp32, tf32 (products on a GPU's tensor cores), or bf16 (features and activations "
                 "in 16 bits, weights in fp32)")
      ->type_name("NAME")
      ->check(one_of({"fp32", "tf32", "bf16"}))
      ->capture_default_str();
}

void add_result_options(Arguments& app, TrainArguments& a) {
  app.add_flag("--parallel-runs", a.parallel_runs,
               "train several runs at a time, with one thread each");
  app.add_option("-c,--checkpoint", a.checkpoint,
                 "file for the trained model and the state of the training")
      ->type_name("FILE");
  app.add_option("--checkpoint-every", a.checkpoint_every, "write the checkpoint every N epochs")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--resume", a.resume, "continue from the checkpoint, if there is one");
  app.add_option("--baseline", a.baseline,
                 "with --bits: a checkpoint of the same model with all bits, so that the new one "
                 "says what its bits cost")
      ->type_name("FILE");
  app.add_flag("--dry-run", a.dry_run, "only report how much memory training would take");
  app.add_flag(
      "--recompute", a.recompute,
      "compute values again for gradients instead of keeping them, where that saves memory "
      "and costs little");
  app.add_option("--explain", a.explain,
                 "only report how something is done: step, the operations of a training step, what "
                 "was joined, and what that should save")
      ->type_name("WHAT")
      ->check(one_of({"step"}));
  app.add_option("--without-rewrites", a.rewrites_off,
                 "leave out ways to join operations that --explain step names: to measure them")
      ->type_name("NAMES")
      ->delimiter(',');
  app.add_flag("--curve", a.curve, "draw loss and accuracy over the epochs, as text");
  app.add_option("--save-data", a.saved_data,
                 "also write the data as it was read, .tsr or .npz, as 'tessera convert' does")
      ->type_name("FILE");
  app.add_option("--plot", a.plot, "picture of loss and accuracy over the epochs, .svg or .png")
      ->type_name("FILE");
  add_report_option(app, a.reports);
}

/// Matrix Market has no place for labels.
void require_ending_for_data(const std::string& path) {
  if (path.empty() || path.ends_with(".tsr") || path.ends_with(".npz")) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is no file for data with labels", path), "--save-data",
              "name a file that ends in .tsr or .npz");
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

std::vector<std::int64_t> parse_fan_outs(const std::string& text) {
  std::vector<std::int64_t> fan_outs;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const auto [end, problem] =
        std::from_chars(part.data(), part.data() + part.size(), fan_outs.emplace_back());
    if (problem == std::errc() && end == part.data() + part.size()) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no fan-out", part), "--fanout",
                "give a number for each layer, the last one first, such as 15,10,5");
  }
  return fan_outs;
}

constexpr const char* all_splits = "all";

/// Absent: one after the other.
std::optional<std::int64_t> parse_split_index(const std::string& text) {
  if (text.empty() || text == all_splits) return {};
  std::int64_t index = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (problem != std::errc() || end != text.data() + text.size() || index < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no split", text), "--split-index",
                "give the number of a split, from 0, or all");
  }
  return index;
}

/// So many on each split.
std::int64_t runs_on_all(std::int64_t runs, const Dataset& dataset) {
  std::int64_t all = 0;
  if (!__builtin_mul_overflow(runs, std::max<std::int64_t>(1, std::ssize(dataset.splits)), &all)) {
    return all;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("{} runs on every split", runs), "--runs",
              "use fewer");
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
  if (a.bits) config.bits = nn::parse_bits(*a.bits);
  if (a.batch_norm) config.batch_norm = true;
  if (a.residual) config.residual = true;
  if (a.precompute) config.precomputed = true;
}

/// A schedule that is named takes the place of the paper's, with its rate of decay.
void apply_schedule(const TrainArguments& a, train::TrainOptions& options) {
  if (a.schedule) {
    using train::Schedule;
    options.schedule = train::parse_schedule(*a.schedule);
    options.rate_decay = 0.5;
    options.rate_decay_every = options.schedule == Schedule::steps     ? 50
                               : options.schedule == Schedule::plateau ? 10
                                                                       : 0;
  }
  override_with(a.decay_every, options.rate_decay_every);
  override_with(a.decay_factor, options.rate_decay);
  override_with(a.warm_up, options.warm_up);
}

void apply_number_options(const TrainArguments& a, train::NumberOptions& options) {
  if (a.links.loss) options.loss = ops::parse_number_loss(*a.links.loss);
  override_with(a.huber_delta, options.huber_delta);
  options.standardise = !a.raw_targets;
}

}  // namespace

void apply_training_options(const TrainArguments& a, train::TrainOptions& options) {
  apply_schedule(a, options);
  override_with(a.clip_gradients, options.clip_gradients);
  override_with(a.average_weights, options.average_weights);
  override_with(a.label_smoothing, options.label_smoothing);
  options.class_weights = train::parse_class_weights(a.class_weights);
  options.stop_by = train::parse_stop_by(a.stop_by);
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
  override_with(a.batch_size, options.batch_size);
  override_with(a.walk_length, options.walk_length);
  override_with(a.rows_at_a_time, options.rows_at_a_time);
  if (a.fan_outs) options.fan_outs = parse_fan_outs(*a.fan_outs);
  options.replace = a.replace;
  options.process_every_step = a.process_every_step;
  options.pattern = train::parse_pattern_choice(a.pattern);
  options.partition_method = a.method;
  options.task = train::parse_task(a.task);
  options.metric = train::parse_metric(a.metric);
  options.normalise = train::parse_normalise(a.normalise);
  if (options.task == train::Task::numbers) apply_number_options(a, options.numbers);
  if (options.task == train::Task::links) {
    apply(a.links, a.split.empty() ? std::nullopt : std::optional(parse_split(a.split)),
          options.links);
    options.links.kinds = parse_kinds(a.data.tables.kinds);
  } else if (!a.split.empty()) {
    options.split = parse_split(a.split);
  }
  options.split_index = parse_split_index(a.split_index);
  options.folds = a.folds;
  options.runs = a.runs.value_or(std::max<std::int64_t>(a.folds, 1));
  options.parallel_runs = a.parallel_runs;
  options.recompute = a.recompute;
  options.rewrites_off = a.rewrites_off;
  options.checkpoint = {a.checkpoint, a.checkpoint_every, a.resume, {}};
  options.placement.precision = parse_precision(a.precision);
}

void add_train_options(Arguments& app, TrainArguments& arguments) {
  add_training_settings(app, arguments);
  add_result_options(app, arguments);
}

void add_training_settings(Arguments& app, TrainArguments& arguments) {
  add_data_options(app, arguments.data);
  add_run_options(app, arguments);
  add_model_options(app, arguments);
  add_training_options(app, arguments);
  add_task_options(app, arguments);
  add_link_options(app, arguments.links);
  add_reading_options(app, arguments.data);
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
  picture::require_picture_ending(arguments.plot, "--plot");
  require_ending_for_data(arguments.saved_data);
  require_report_endings(arguments.reports);
  if (arguments.resume && arguments.checkpoint.empty()) {
    throw Error(ErrorCode::invalid_argument, "--resume without a checkpoint", "",
                "name the file with --checkpoint");
  }
  if (!arguments.baseline.empty() && (arguments.checkpoint.empty() || !arguments.bits)) {
    throw Error(ErrorCode::invalid_argument, "--baseline without --bits and --checkpoint", "",
                "give all three: the checkpoint says what its bits cost");
  }
  train::TrainOptions options;
  // What the paper has instead of these depends on the data.
  options.epochs = std::numeric_limits<std::int64_t>::max();
  options.schedule = train::Schedule::steps;
  options.rate_decay_every = 1;
  apply_training_options(arguments, options);
  train::validate(options);
}

void read_for_task(TrainArguments& arguments) {
  arguments.data.tables.numbers = train::parse_task(arguments.task) == train::Task::numbers;
  const std::string& column = arguments.links.time;
  std::vector<std::string>& columns = arguments.data.tables.edge_features;
  const bool is_read = std::find(columns.begin(), columns.end(), column) != columns.end();
  const bool links = train::parse_task(arguments.task) == train::Task::links;
  if (links && !column.empty() && !is_read) columns.push_back(column);
  if (links) arguments.data.tables.edge_time = column;
}

std::vector<FileUse> files_of(const TrainArguments& arguments) {
  const FileRole role = arguments.resume ? FileRole::state : FileRole::output;
  const bool trains_nothing = arguments.dry_run || !arguments.explain.empty();
  std::vector<FileUse> uses = report_files(arguments.reports);
  uses.insert(uses.end(),
              {{"--partition", arguments.partition_file, FileRole::input},
               {"--baseline", arguments.baseline, FileRole::input},
               {"--checkpoint", trains_nothing ? "" : arguments.checkpoint, role},
               {"--save-data", trains_nothing ? "" : arguments.saved_data, FileRole::output},
               {"--plot", trains_nothing ? "" : arguments.plot, FileRole::picture},
               plans_file(arguments.planning)});
  return with_data_files(arguments.data, std::move(uses));
}

TrainPlan plan_training(const TrainArguments& arguments, const Dataset& dataset,
                        std::uint64_t seed) {
  const nn::ModelKind kind = nn::parse_model_kind(arguments.model);
  const train::Task task = train::chosen_task(dataset, train::parse_task(arguments.task));
  const bool graph_task = train::is_graph_task(dataset, task);
  TrainPlan plan =
      task == train::Task::links
          ? TrainPlan{train::link_encoder(kind, dataset.name), train::link_training(kind)}
          : TrainPlan{nn::paper_defaults(kind, dataset.name, graph_task),
                      train::paper_options(kind, dataset.name, graph_task)};
  if (task == train::Task::numbers) {
    plan.config = train::number_model(kind, dataset.name, graph_task);
  }
  apply_model_options(arguments, plan.config);
  if (nn::reads_edges(plan.config)) plan.config.edge_features = dataset.edge_features.count();
  apply_training_options(arguments, plan.options);
  if (task == train::Task::numbers) {
    plan.options.task = task;
    apply_number_options(arguments, plan.options.numbers);
  }
  if (arguments.split_index == all_splits) {
    plan.options.runs = runs_on_all(plan.options.runs, dataset);
  }
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
