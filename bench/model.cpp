// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/trainer.hpp"

#include "bench/inputs.hpp"
#include "bench/model_part.hpp"
#include "bench/ops.hpp"
#include "bench/wide_check.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t drawn_width = 64;
constexpr std::int64_t drawn_classes = 16;

bool attends(nn::ModelKind kind) {
  return kind == nn::ModelKind::gat || kind == nn::ModelKind::gatv2;
}

/// As in the paper, or of the shape that was asked for.
nn::ModelConfig config_of(nn::ModelKind kind, const std::string& dataset, const ModelShape& shape,
                          bool of_graphs) {
  nn::ModelConfig config = nn::paper_defaults(kind, dataset, of_graphs);
  if (!shape.is_given()) return config;
  if (kind != nn::ModelKind::sgc) config.layers = 2;
  config.output_heads = 1;
  config.dropout = config.input_dropout = config.attention_dropout = shape.dropout.value_or(0);
  config.head_dropout = shape.dropout.value_or(0);
  if (!attends(kind)) {
    config.hidden = shape.hidden.value_or(config.hidden);
    return config;
  }
  const std::int64_t hidden = shape.hidden.value_or(config.hidden * config.heads);
  config.heads = shape.heads.value_or(config.heads);
  if (hidden % config.heads != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} hidden features and {} heads", hidden, config.heads), "--heads",
                "give a number of heads that divides the hidden width");
  }
  config.hidden = hidden / config.heads;
  return config;
}

/// Features and labels for a graph that has none.
Dataset drawn_dataset(const Problem& problem) {
  const VertexId vertices = problem.graph.num_rows();
  const std::int64_t classes = problem.shape.classes.value_or(drawn_classes);
  if (!problem.graph.is_square() || vertices < classes) {
    throw Error(ErrorCode::unsupported, "models need a square graph of some size",
                problem.graph_name, "use another graph");
  }
  Dataset dataset;
  dataset.name = problem.graph_name;
  dataset.graph = problem.graph;
  const std::int64_t width = problem.features > 0 ? problem.features : drawn_width;
  dataset.features =
      std::make_shared<const Matrix<float>>(random_matrix<float>(vertices, width, problem.seed));
  std::vector<std::int64_t> labels(static_cast<std::size_t>(vertices));
  for (std::size_t v = 0; v < labels.size(); ++v) {
    labels[v] = static_cast<std::int64_t>(v) % classes;
  }
  dataset.labels = ClassLabels(std::move(labels));
  return dataset;
}

bool has_classes(const Dataset& dataset, std::optional<std::int64_t> wanted) {
  const auto* const labels = std::get_if<ClassLabels>(&dataset.labels);
  if (labels == nullptr || !wanted) return labels != nullptr;
  std::set<std::int64_t> classes(labels->begin(), labels->end());
  classes.erase(-1);
  return std::ssize(classes) == *wanted;
}

/// A data set of labelled graphs.
Dataset graphs_of(const Problem& problem) {
  const Dataset* const given = problem.dataset.get();
  if (given == nullptr || given->graph_labels.empty()) {
    throw Error(ErrorCode::unsupported, "this is no data set of labelled graphs",
                problem.graph_name, "use one, such as DD.npz");
  }
  return *given;
}

/// The data set itself where it can be learnt from and has the widths that were asked for.
Dataset dataset_of(const Problem& problem, bool of_graphs) {
  if (of_graphs) return graphs_of(problem);
  const Dataset* const given = problem.dataset.get();
  const bool usable = given != nullptr && given->num_features() > 0 &&
                      (problem.features == 0 || problem.features == given->num_features()) &&
                      has_classes(*given, problem.shape.classes);
  return usable ? *given : drawn_dataset(problem);
}

step::Tensor logits_of(nn::Model& model, const train::Problem& problem, step::Placement placement) {
  step::Topology graph(problem.graph, placement.device());
  nn::InputFeatures features(problem.features, placement, !model.accepts_sparse());
  step::Context context;
  context.graph = &graph;
  std::optional<step::Topology> pooling;
  if (problem.graph_task) {
    pooling.emplace(step::pooling_graph(problem.graph_ids, problem.num_items), placement.device());
    context.pooling = &*pooling;
  }
  const ops::DenseWorkspace workspace(placement.place());
  context.workspace = &workspace;
  step::Tensor copy(placement);
  copy.copy_from(model.forward(features.input(), context));
  return copy;
}

/// Steps that are queued before the host waits once: as many as short ones need to hide that wait,
/// and so many of long ones.
constexpr std::int64_t queued_steps = 100;
constexpr std::int64_t fewest_queued_steps = 10;

/// What is timed of a training.
struct Work {
  const char* name;
  const char* summary;
  train::Batching batching = train::Batching::full;
  bool evaluates = false;
  bool processes = false;  ///< the graph, in every step

  bool of_graphs() const { return batching == train::Batching::graphs; }
};

/// A model being trained. Its check compares the logits of fresh weights with
/// those of the same weights in double precision, on a part of a large graph, for which plans may
/// choose other kernels than for the whole.
class ModelTrial : public Trial {
 public:
  ModelTrial(const Problem& problem, nn::ModelKind kind, const Work& work)
      : dataset_(dataset_of(problem, work.of_graphs())),
        config_(config_of(kind, dataset_.name, problem.shape, work.of_graphs())),
        options_(train::paper_options(kind, dataset_.name, work.of_graphs())),
        seed_(problem.seed),
        evaluates_(work.evaluates) {
    options_.task = work.of_graphs() ? train::Task::graph : train::Task::node;
    options_.batching = work.batching;
    options_.process_every_step = work.processes;
    options_.seed = seed_;
    options_.placement.memory = &default_memory(problem.device);
    options_.placement.precision = problem.precision;
    options_.plans = problem.plans;
    train::validate(options_);
    problem_ = train::prepare(dataset_, config_, options_);
    trainer_ = std::make_unique<train::Trainer>(problem_, problem_.split, config_, options_, seed_);
  }

  Gate check() override {
    const step::Placement wide{Precision::fp64};
    nn::Model reference(config_, problem_.num_features(), problem_.outputs, seed_, wide);
    const step::Placement& own = options_.placement;
    nn::Model model(config_, problem_.num_features(), problem_.outputs, seed_, own);
    copy_state(model, reference);
    const train::Problem part = part_of(problem_, seed_);
    Gate gate = wide_gate(logits_of(model, part, own), logits_of(reference, part, wide));
    gate.rows_total = problem_.num_items;
    return gate;
  }

  void run(Stream) override { train_epochs(1); }

  bool only_queues() const override { return false; }

  /// A GPU gets many steps to do one after the other, as in training; the host's clock counts.
  std::optional<Timing> timed(const MeasureOptions& options) override {
    // The check had a model of its own.
    reset_memory_peak(device());
    for (int i = 0; i < options.warmups; ++i) run({});
    const bool in_batches =
        options_.batching != train::Batching::full || options_.process_every_step;
    if (!in_batches && !trainer_->runs_ahead()) return std::nullopt;
    const std::int64_t epochs = in_batches ? 1 : epochs_within(options.max_seconds);
    const std::int64_t before = trainer_->step();
    train_epochs(epochs);
    const std::int64_t steps = trainer_->step() - before;
    MeasureOptions rounds = options;
    rounds.warmups = 1;
    rounds.repeats = 5;
    rounds.max_repeats = std::max(3, options.max_repeats / static_cast<int>(steps));
    const train::PhaseTimes times = trainer_->times();
    Timing timing = measure([&] { train_epochs(epochs); }, rounds);
    if (in_batches) note_phases(times, static_cast<double>(trainer_->step() - before - steps));
    for (double* time : {&timing.median_us, &timing.min_us, &timing.worst_us, &timing.mean_us}) {
      *time /= static_cast<double>(steps);
    }
    timing.repeats *= steps;
    return timing;
  }

  /// The features, the adjacency and the parameters, forward and backward.
  std::int64_t bytes() const override {
    const nn::DataShape shape = problem_.shape();
    const std::int64_t entries =
        shape.feature_entries > 0 ? 2 * shape.feature_entries : shape.vertices * shape.features;
    const std::int64_t passes = evaluates_ ? 3 : 2;
    const auto word = static_cast<std::int64_t>(bytes_per_element(options_.placement.precision));
    return passes * (word * entries + structure_bytes(problem_.graph, device()));
  }
  std::vector<Figure> figures() const override {
    const train::FirstStep& first = trainer_->first_step();
    std::vector<Figure> figures = {
        {"first_start_us", first.start * 1e6}, {"first_upload_us", first.upload * 1e6},
        {"first_build_us", first.build * 1e6}, {"first_plan_us", first.plan * 1e6},
        {"first_step_us", first.step * 1e6},   {"first_capture_us", first.capture * 1e6}};
    figures.push_back({"peak_memory_bytes", static_cast<double>(memory_use(device()).peak_bytes)});
    if (first.launches > 0) figures.push_back({"launches", static_cast<double>(first.launches)});
    figures.insert(figures.end(), phases_.begin(), phases_.end());
    return figures;
  }
  std::int64_t features() const override { return problem_.num_features(); }
  std::string kernel() const override {
    return fmt::format("train/{}/{}", device().kind == DeviceKind::cpu ? "cpu" : "cuda",
                       train::to_string(options_.batching));
  }
  std::string plan() const override { return trainer_->model().describe(); }

 private:
  Device device() const { return options_.placement.device(); }

  /// Where the host spent the time of a step since `before`, the mean over so many.
  void note_phases(const train::PhaseTimes& before, double steps) {
    phases_.clear();
    for (const train::Phase phase : {train::Phase::batches, train::Phase::passes,
                                     train::Phase::optimiser, train::Phase::device}) {
      const double seconds = trainer_->times()[phase] - before[phase];
      phases_.push_back({fmt::format("{}_us", train::to_string(phase)), seconds * 1e6 / steps});
    }
  }

  /// How many fit into a round of so many seconds.
  std::int64_t epochs_within(double seconds) {
    const Stopwatch watch;
    train_epochs(fewest_queued_steps);
    const double each = watch.seconds() / static_cast<double>(fewest_queued_steps);
    return std::clamp(static_cast<std::int64_t>(seconds / each), fewest_queued_steps, queued_steps);
  }

  void train_epochs(std::int64_t count) {
    if (!evaluates_) {
      trainer_->train_epochs(count);
      return;
    }
    const std::int64_t ahead = trainer_->runs_ahead() && count > 1 ? 1 : 0;
    for (std::int64_t i = 0; i < ahead; ++i) trainer_->start_epoch(true);
    for (std::int64_t i = ahead; i < count; ++i) {
      trainer_->start_epoch(true);
      trainer_->finish_epoch();
    }
    for (std::int64_t i = 0; i < ahead; ++i) trainer_->finish_epoch();
  }

  Dataset dataset_;
  nn::ModelConfig config_;
  train::TrainOptions options_;
  std::uint64_t seed_;
  bool evaluates_;
  train::Problem problem_;
  std::unique_ptr<train::Trainer> trainer_;
  std::vector<Figure> phases_;  ///< of a step in batches
};

Suite model_suite(const Work& work, nn::ModelKind kind) {
  Suite suite;
  suite.op = fmt::format("{}_{}", work.name, nn::to_string(kind));
  suite.summary = work.summary;
  suite.precisions = {Precision::fp32, Precision::tf32, Precision::bf16};
  suite.features = {0};
  suite.on_request = true;
  suite.has_shape = true;
  suite.usual_heads = attends(kind) ? 8 : 0;
  suite.prepare = [kind, work](const Problem& problem) {
    return std::make_unique<ModelTrial>(problem, kind, work);
  };
  return suite;
}

}  // namespace

std::vector<Suite> model_suites() {
  constexpr Work all[] = {
      {.name = "step", .summary = "one training step of a model"},
      {.name = "epoch", .summary = "a training step and its evaluation", .evaluates = true},
      {.name = "inductive",
       .summary = "one training step whose graph is new: processed, planned and computed",
       .processes = true},
      {.name = "clusters",
       .summary = "one training step on a sixteenth of the graph (Cluster-GCN)",
       .batching = train::Batching::clusters},
      {.name = "graphs",
       .summary = "one training step on 128 graphs",
       .batching = train::Batching::graphs},
  };
  std::vector<Suite> suites;
  for (const CatalogueEntry& entry : nn::model_kinds()) {
    for (const Work& work : all) {
      suites.push_back(model_suite(work, nn::parse_model_kind(entry.name)));
    }
  }
  return suites;
}

}  // namespace tessera::bench
