// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/progress.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/optimiser.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/train/link_options.hpp"
#include "tessera/train/metrics.hpp"
#include "tessera/train/normalisation.hpp"
#include "tessera/train/numbers.hpp"
#include "tessera/train/pattern.hpp"
#include "tessera/train/report.hpp"
#include "tessera/train/split.hpp"

namespace tessera::train {

struct Checkpoint;

/// What is learned: classes of vertices or graphs, which pairs of vertices are edges, or numbers of
/// vertices or graphs. `automatic`: classes of graphs where the data set has labels for them, then
/// numbers of graphs, classes of vertices and numbers of vertices.
enum class Task { automatic, node, graph, links, numbers };

/// What one step of training sees.
enum class Batching {
  full,        ///< everything at once
  clusters,    ///< some parts of a partition and the edges among them (Chiang et al. 2019)
  graphs,      ///< some graphs of a union
  neighbours,  ///< some vertices, and for each layer neighbours drawn for it (Hamilton et al. 2017)
  walks,       ///< what walks from some vertices meet, and the edges among it (Zeng et al. 2020)
};

/// How the learning rate goes on after warming up.
enum class Schedule {
  constant,  ///< as it is
  steps,     ///< times `rate_decay` every `rate_decay_every` epochs
  cosine,    ///< half a wave of it down to 0, over all epochs
  plateau,   ///< times `rate_decay` after every `rate_decay_every` epochs without progress
};

/// What items of a class count in the loss, whose mean is over these: where graphs or vertices of
/// some classes are rare.
struct ClassWeights {
  /// Every class counts the same in all: its items, their number among those of training.
  bool balanced = false;
  /// By the name of a class, or its number; others count 1.
  std::vector<std::pair<std::string, double>> given = {};

  bool none() const { return !balanced && given.empty(); }
};
/// "balanced", "none", or "spam=5,ham=1". Anything else is an `invalid_argument` error.
ClassWeights parse_class_weights(const std::string& text);
std::string to_string(const ClassWeights& weights);

const char* to_string(Schedule schedule) noexcept;
Schedule parse_schedule(const std::string& text);
const char* to_string(Task task) noexcept;
const char* to_string(Batching batching) noexcept;
Task parse_task(const std::string& text);
Batching parse_batching(const std::string& text);

struct CheckpointOptions {
  std::string path;         ///< empty: none is written
  std::int64_t every = 10;  ///< epochs; one is always written at the end
  bool resume = false;      ///< go on from the file at `path`, if there is one
  /// With bits: what the same model reaches on the test items with all bits, so that the checkpoint
  /// says what they cost.
  std::optional<double> full_test = {};
  /// Not null: becomes what a file would hold after the last epoch, whether one is written or not.
  std::shared_ptr<Checkpoint> kept = {};
};

struct TrainOptions {
  ops::OptimiserOptions optimiser;
  Schedule schedule = Schedule::constant;
  std::int64_t rate_decay_every = 0;  ///< epochs: see `Schedule`
  double rate_decay = 0.5;
  /// Over so many first epochs the learning rate rises to what it is, in equal steps.
  std::int64_t warm_up = 0;
  /// Gradients are scaled down to this Euclidean norm, all together; 0: never.
  double clip_gradients = 0;
  /// Evaluated and kept are the means of the weights over the steps, of which each counts so many
  /// times as much as the next: 1 is a plain mean. 0: the weights themselves.
  double average_weights = 0;
  ClassWeights class_weights;
  double label_smoothing = 0;  ///< see `ops::LossOptions`
  std::int64_t epochs = 200;
  /// The epochs that are evaluated are those with numbers divisible by it. The best epoch is one of
  /// them, and early stopping looks at them alone.
  std::int64_t evaluate_every = 1;
  /// Stop after so many epochs without progress (`stop_by`) on the validation items; 0: never.
  std::int64_t patience = 0;
  StopBy stop_by = StopBy::either;
  /// After so many epochs a run is left as it is, for a later call to go on with; 0: never.
  std::int64_t pause_at = 0;

  Task task = Task::automatic;
  LinkOptions links;      ///< where these are the task
  NumberOptions numbers;  ///< the same
  Metric metric = Metric::automatic;
  Normalise normalise = Normalise::automatic;
  /// For data without a split of its own.
  SplitShares split;
  /// Of data with several splits: the number of the one to use, from 0. Absent: the first run uses
  /// the first, the next run the next, and so on in turns.
  std::optional<std::int64_t> split_index = {};
  /// Cross-validation: run r is tested on fold r of so many; 0: off. See `fold_split`.
  std::int64_t folds = 0;

  Batching batching = Batching::full;
  std::int64_t parts = 16;           ///< clusters: how many to make
  std::int64_t parts_per_batch = 1;  ///< clusters: how many a step sees
  std::string partition_method = "auto";
  std::optional<Partition> partition;  ///< clusters: use these instead
  std::int64_t graphs_per_batch = 128;
  /// Neighbours: how many vertices a step is trained on; walks: how many it walks from.
  std::int64_t batch_size = 1024;
  std::int64_t walk_length = 2;  ///< walks: how many steps a walk has
  /// Neighbours: how many a vertex draws, the last layer of the model first, or one number for all
  /// layers; -1 all, 0 none.
  std::vector<std::int64_t> fan_outs = {10};
  bool replace = false;  ///< neighbours: drawn with replacement
  /// Vertices: evaluation goes layer by layer, over so many of them at a time, in little memory; 0:
  /// over all. The results are the same within rounding.
  std::int64_t rows_at_a_time = 0;
  /// Full batches of one graph: whether every step takes the graph for a new one (inductive use),
  /// so that edges are processed (graph/process.hpp) and planned for again, or it is processed once
  /// and kept (transductive use). The results are the same.
  bool process_every_step = false;
  /// Vertices may get other numbers for training: all of a full batch, or those of each batch on
  /// its own. Splits, checkpoints and predictions keep the numbers of the data. Sums are added in
  /// another order, and dropout draws other elements.
  PatternChoice pattern;

  std::uint64_t seed = 1;  ///< of the first run; each further run has the next
  std::int64_t runs = 1;
  /// As many runs at a time as there are threads, one thread each, instead of one run on all.
  bool parallel_runs = false;
  /// Where and in what precision: fp32, tf32, or bf16 beside fp32 weights (fp64 on the CPU).
  step::Placement placement;
  /// How plans are made; device, kernel, backward and epochs are the training's own affair.
  ops::PlanOptions plans;
  /// On a GPU, full batches: after the first step record the next one and replay it as a whole
  /// (core/recording.hpp). The results are the same; a step of a small graph takes a fraction.
  bool record_steps = true;
  /// Compute values again for gradients rather than keep them, where that saves memory and costs
  /// little (step/recompute.hpp). The results are the same.
  bool recompute = false;
  /// Rewrites of the step that are left out (step/rewrites.hpp): to measure what they are worth.
  std::vector<std::string> rewrites_off = {};
  CheckpointOptions checkpoint;

  /// Called after every epoch, from one thread at a time. May throw to stop; a checkpoint, if there
  /// is to be one, is written first.
  std::function<void(const EpochRecord&)> on_epoch;
  Progress progress;  ///< of the work before the first epoch
};

/// What the model's paper trained with: see `nn::paper_defaults`.
TrainOptions paper_options(nn::ModelKind kind, const std::string& dataset = {},
                           bool graph_task = false);

/// For numbers: as for classes, without dropout, whose noise a number shows and a class does not.
nn::ModelConfig number_model(nn::ModelKind kind, const std::string& dataset = {},
                             bool graph_task = false);

/// For links: those of the graph auto-encoder of Kipf and Welling as PyG's example has it, and any
/// model as its encoder, without dropout; for lightgcn embeddings of 64 numbers, the BPR loss, and
/// negatives of the same source.
TrainOptions link_training(nn::ModelKind kind = nn::ModelKind::gcn);
nn::ModelConfig link_encoder(nn::ModelKind kind, const std::string& dataset = {});

/// Throws `invalid_argument` naming the option that makes no sense, and what would.
void validate(const TrainOptions& options);

/// A name and its value as text.
struct Setting {
  std::string name;
  std::string value;

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// Every field that shapes the result, in a fixed order.
std::vector<Setting> settings_of(const nn::ModelConfig& config);
std::vector<Setting> settings_of(const TrainOptions& options);

}  // namespace tessera::train
