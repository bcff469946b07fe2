// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/options.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/names.hpp"
#include "train/schedule.hpp"

namespace tessera::train {
namespace {

constexpr std::array<Named<Task>, 5> task_names = {{{Task::automatic, "auto"},
                                                    {Task::node, "node"},
                                                    {Task::graph, "graph"},
                                                    {Task::links, "links"},
                                                    {Task::numbers, "numbers"}}};
constexpr std::array<Named<Batching>, 5> batching_names = {{{Batching::full, "full"},
                                                            {Batching::clusters, "clusters"},
                                                            {Batching::graphs, "graphs"},
                                                            {Batching::neighbours, "neighbours"},
                                                            {Batching::walks, "walks"}}};
constexpr std::array<Named<Normalise>, 4> normalise_names = {{{Normalise::automatic, "auto"},
                                                              {Normalise::off, "off"},
                                                              {Normalise::rows, "rows"},
                                                              {Normalise::standard, "standard"}}};

void require(bool holds, const std::string& problem, const std::string& fix) {
  if (!holds) throw Error(ErrorCode::invalid_argument, problem, "training", fix);
}

void require_at_least(const char* name, std::int64_t value, std::int64_t least) {
  require(value >= least, fmt::format("{} is {}", name, value),
          fmt::format("give at least {}", least));
}

void require_not_negative(const char* name, double value) {
  require(value >= 0 && std::isfinite(value), fmt::format("{} is {}", name, value),
          "give a finite number of at least 0");
}

void validate_fan_outs(const TrainOptions& options) {
  require(!options.fan_outs.empty(), "no fan_outs", "give one for each layer, or one for all");
  for (const std::int64_t fan_out : options.fan_outs) {
    require(fan_out >= -1 && fan_out <= std::numeric_limits<VertexId>::max(),
            fmt::format("fan_outs has {}", fan_out), "give numbers from 0 on, or -1 for all");
  }
}

bool is_pubmed(const std::string& dataset) { return dataset.find("pubmed") != std::string::npos; }

void set_long_training(TrainOptions& options) {
  options.epochs = 1000;
  options.patience = 100;
}

void set_attention_defaults(TrainOptions& options, bool pubmed) {
  options.optimiser.learning_rate = pubmed ? 0.01 : 0.005;
  options.optimiser.weight_decay = pubmed ? 1e-3 : 5e-4;
  set_long_training(options);
}

}  // namespace

const char* to_string(Task task) noexcept { return name_of(task_names, task); }
const char* to_string(Batching batching) noexcept { return name_of(batching_names, batching); }
const char* to_string(Normalise choice) noexcept { return name_of(normalise_names, choice); }
Task parse_task(const std::string& text) { return parse_name(task_names, "task", text); }
Batching parse_batching(const std::string& text) {
  return parse_name(batching_names, "batching", text);
}
Normalise parse_normalise(const std::string& text) {
  if (text == "on") return Normalise::rows;
  return parse_name(normalise_names, "normalise", text);
}

TrainOptions paper_options(nn::ModelKind kind, const std::string& dataset, bool graph_task) {
  TrainOptions options;
  options.optimiser.learning_rate = 0.01;
  options.optimiser.weight_decay = 5e-4;
  if (graph_task) {
    options.optimiser.weight_decay = 0;
    options.epochs = 100;
    options.schedule = Schedule::steps;
    options.rate_decay_every = 50;
    options.batching = Batching::graphs;
    return options;
  }
  switch (kind) {
    case nn::ModelKind::gat:
    case nn::ModelKind::gatv2: set_attention_defaults(options, is_pubmed(dataset)); break;
    case nn::ModelKind::agnn: set_long_training(options); break;
    case nn::ModelKind::sgc:
      options.optimiser.learning_rate = 0.2;
      options.optimiser.weight_decay = 5e-5;
      options.epochs = 100;
      break;
    default: break;
  }
  return options;
}

nn::ModelConfig number_model(nn::ModelKind kind, const std::string& dataset, bool graph_task) {
  nn::ModelConfig config = nn::paper_defaults(kind, dataset, graph_task);
  config.input_dropout = config.dropout = config.head_dropout = config.attention_dropout = 0;
  return config;
}

void validate(const TrainOptions& options) {
  require_at_least("epochs", options.epochs, 1);
  require_at_least("runs", options.runs, 1);
  require_at_least("evaluate_every", options.evaluate_every, 1);
  require_at_least("patience", options.patience, 0);
  require_at_least("parts", options.parts, 1);
  require_at_least("parts_per_batch", options.parts_per_batch, 1);
  require_at_least("graphs_per_batch", options.graphs_per_batch, 1);
  require_at_least("batch_size", options.batch_size, 1);
  require_at_least("walk_length", options.walk_length, 1);
  require_at_least("rows_at_a_time", options.rows_at_a_time, 0);
  validate_fan_outs(options);
  require_at_least("checkpoint.every", options.checkpoint.every, 1);
  require_not_negative("learning_rate", options.optimiser.learning_rate);
  require_not_negative("weight_decay", options.optimiser.weight_decay);
  require_not_negative("momentum", options.optimiser.momentum);
  require_not_negative("rate_decay", options.rate_decay);
  require_not_negative("clip_gradients", options.clip_gradients);
  require(options.average_weights >= 0 && options.average_weights <= 1,
          fmt::format("average_weights is {}", options.average_weights),
          "give a number from 0 to 1, such as 0.99");
  require(options.label_smoothing >= 0 && options.label_smoothing < 1,
          fmt::format("label_smoothing is {}", options.label_smoothing),
          "give a number from 0 to below 1, such as 0.1");
  require(options.numbers.huber_delta > 0 && std::isfinite(options.numbers.huber_delta),
          fmt::format("huber_delta is {}", options.numbers.huber_delta),
          "give a finite number above 0");
  require_at_least("pause_at", options.pause_at, 0);
  validate_schedule(options);
  require(options.placement.precision != Precision::fp16, "training in fp16 would lose gradients",
          "use bf16, which has fp32's range");
  require(options.folds == 0 || options.folds >= 3, fmt::format("folds is {}", options.folds),
          "give 0 for none, or at least 3");
  if (options.process_every_step && options.batching != Batching::full) {
    throw Error(ErrorCode::invalid_argument, "batches are made anew in every step anyway",
                "process_every_step", "leave it out, or train with full batches");
  }
  if (options.process_every_step && options.pattern.kind != PatternChoice::Kind::off) {
    throw Error(ErrorCode::invalid_argument, "a graph that is processed in every step has no order",
                "pattern", "leave it out, or process the graph once");
  }
  if (options.pattern.kind == PatternChoice::Kind::given) options.pattern.pattern.validate();
  require(!options.parallel_runs || options.checkpoint.path.empty(),
          "runs side by side cannot be checkpointed",
          "do without the checkpoint, or run one after the other");
  require(!options.parallel_runs || options.checkpoint.kept == nullptr,
          "of runs side by side no weights are kept", "run one after the other");
}

}  // namespace tessera::train
