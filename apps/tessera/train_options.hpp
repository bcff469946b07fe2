// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "files.hpp"
#include "link_options.hpp"
#include "options.hpp"
#include "planning.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/train/options.hpp"

namespace tessera::app {

/// What was given on the command line of `train`. Whatever is absent is as in the model's paper.
struct TrainArguments {
  DataOptions data;
  std::string model = "gcn";
  std::optional<std::int64_t> layers, hidden, heads, output_heads, hops;
  std::optional<double> dropout, input_dropout, attention_dropout;
  std::optional<std::string> aggregation, activation, readout, bits;
  bool batch_norm = false, residual = false, precompute = false;

  std::optional<std::int64_t> epochs, evaluate_every, early_stopping;
  std::optional<double> learning_rate, weight_decay, momentum;
  std::optional<std::string> optimiser, batch, schedule;
  std::optional<std::int64_t> decay_every, warm_up;
  std::optional<double> decay_factor, clip_gradients, average_weights, label_smoothing;
  std::string class_weights = "none", stop_by = "either";
  std::optional<std::int64_t> parts, parts_per_batch, graphs_per_batch, batch_size;
  std::optional<std::int64_t> walk_length, rows_at_a_time;
  std::optional<std::string> fan_outs;
  bool replace = false;
  bool process_every_step = false;
  std::string partition_file, method = "auto", pattern = "off";

  LinkArguments links;
  std::optional<double> huber_delta;
  bool raw_targets = false;
  std::string task = "auto", metric = "auto", normalise = "auto", split;
  std::string split_index;  ///< a number, or "all"
  std::int64_t folds = 0;
  std::optional<std::int64_t> runs;  ///< 1, or one for each fold or split
  bool parallel_runs = false;
  std::string device = "cpu", precision = "fp32";
  PlanningOptions planning;

  std::string checkpoint, baseline;
  std::int64_t checkpoint_every = 10;
  bool resume = false;
  bool dry_run = false, curve = false, recompute = false;
  std::string explain;
  std::vector<std::string> rewrites_off;
  std::string saved_data, plot;
  std::vector<std::string> reports;
};

/// An option that was given takes the place of what is there.
template <class Value, class Target>
void override_with(const std::optional<Value>& given, Target& target) {
  if (given) target = *given;
}

void add_train_options(Arguments& app, TrainArguments& arguments);
/// Those that say what is trained and how, without files and pictures of results.
void add_training_settings(Arguments& app, TrainArguments& arguments);
/// What can be searched: options of the model and of the training, by `Option::group`.
inline constexpr const char* model_group = "Model options (default: as in the model's paper)";
inline constexpr const char* training_group = "Training options (default: as in the model's paper)";

/// The files that training reads and writes.
std::vector<FileUse> files_of(const TrainArguments& arguments);

/// What to train and how.
struct TrainPlan {
  nn::ModelConfig config;
  train::TrainOptions options;
};

/// Throws where an option contradicts another or names nothing, before any data is read.
void require_sense(const TrainArguments& arguments);

/// Has the data read as the task needs it: with the column of an edge list that `--edge-time` asks
/// for, or labels as numbers.
void read_for_task(TrainArguments& arguments);

/// The paper's choices for this data, with what was given in their place.
TrainPlan plan_training(const TrainArguments& arguments, const Dataset& dataset,
                        std::uint64_t seed);

/// Puts what was given of the training in the place of what the options have.
void apply_training_options(const TrainArguments& arguments, train::TrainOptions& options);

/// Throws where an option was given that changes nothing for this model and this data.
void reject_useless_options(const Arguments& app, const TrainArguments& arguments,
                            const Dataset& dataset, const TrainPlan& plan);

/// The device named, which must be there.
Device checked_device(const std::string& name);

}  // namespace tessera::app
