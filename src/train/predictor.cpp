// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predictor.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/rounding.hpp"
#include "tessera/train/metrics.hpp"
#include "tessera/train/problem.hpp"

#include "train/features.hpp"
#include "train/standardise.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

const Checkpoint& checked(const Checkpoint& checkpoint) {
  if (checkpoint.weights.empty()) {
    reject("the checkpoint holds no trained weights", "checkpoint", "train for at least one epoch");
  }
  validate(checkpoint, "checkpoint");
  return checkpoint;
}

const DenseFeatures* dense_of(const Dataset& dataset) {
  return std::get_if<DenseFeatures>(&dataset.features);
}

/// What a data set brings. Its features are made ready here only if they are not dense: dense ones
/// are treated in every run.
Problem problem_of(const Checkpoint& checkpoint, const nn::ModelConfig& model,
                   const Dataset& dataset, const PredictOptions& options) {
  TrainOptions how;
  how.placement = options.placement;
  how.plans = options.plans;
  nn::ModelConfig config = model;
  const bool is_dense = dense_of(dataset) != nullptr;
  if (is_dense) {
    config.precomputed = false;
    config.bits.clear();
  }
  Problem problem = prepare_features(dataset, config, checkpoint.graph_task,
                                     is_dense ? Normalisation() : checkpoint.normalisation, how);
  if (problem.num_features() != checkpoint.features) {
    reject(fmt::format("the data has {} features, the checkpoint's model {}",
                       problem.num_features(), checkpoint.features),
           problem.name, "use data of the kind the model was trained on");
  }
  return problem;
}

/// The checkpoint's model with the bits that are asked for.
nn::ModelConfig config_of(const Checkpoint& checkpoint, const PredictOptions& options) {
  nn::ModelConfig config = checkpoint.model;
  if (!options.bits.empty()) config.bits = options.bits;
  nn::validate(config);
  return config;
}

Problem problem_of(const Checkpoint& checkpoint, const Graph& graph) {
  if (checkpoint.graph_task) {
    reject("the model classifies graphs of a union, but was given one graph", "Predictor",
           "give it a data set with graph ids");
  }
  if (!graph.is_square()) {
    reject(fmt::format("the graph is {} x {}", graph.num_rows(), graph.num_cols()), "Predictor",
           "use a graph whose targets are its sources");
  }
  Problem problem;
  problem.graph = graph;
  problem.num_items = graph.num_rows();
  return problem;
}

void require_shape(const char* name, std::int64_t rows, std::int64_t cols, std::int64_t wanted_rows,
                   std::int64_t wanted_cols, Device device) {
  if (device.kind != DeviceKind::cpu) {
    reject(fmt::format("{} lie on {}", name, to_string(device)), "Predictor",
           "give it memory of this process");
  }
  if (rows == wanted_rows && cols == wanted_cols) return;
  reject(
      fmt::format("{} are {} x {}, expected {} x {}", name, rows, cols, wanted_rows, wanted_cols),
      "Predictor", "features have a row per vertex, logits a row per item");
}

nn::Placement in_fp32(nn::Placement placement) {
  placement.precision = Precision::fp32;
  return placement;
}

}  // namespace

struct Predictor::State {
  State(const Checkpoint& checkpoint, const nn::ModelConfig& config, const Problem& problem,
        const PredictOptions& options)
      : placement(options.placement),
        features(checkpoint.features),
        items(problem.num_items),
        normalisation(checkpoint.normalisation),
        feature_bits(config.bits.empty() ? 0 : nn::layer_bits(config, 0)),
        hops(config.precomputed ? nn::precomputed_hops(config) : 0),
        class_values(checkpoint.class_values),
        model(config, checkpoint.features, checkpoint.outputs, 0, placement),
        graph(problem.graph, placement.place(), options.plans),
        workspace(placement.place()),
        uploaded(in_fp32(placement)),
        input(placement),
        next(placement),
        downloaded(in_fp32(placement)) {
    restore(checkpoint.weights, model.state(), "checkpoint");
    if (problem.graph_task) {
      pooling.emplace(nn::pooling_graph(problem.graph_ids, problem.num_items), placement.place(),
                      options.plans);
    }
    context.graph = &graph;
    context.pooling = pooling ? &*pooling : nullptr;
    context.stream = placement.stream;
    context.workspace = &workspace;
  }

  /// Numbers are converted where they are used, so that nothing is allocated for it.
  bool converts() const { return storage_of(placement.precision) != ElementType::fp32; }

  /// Dense features as the model reads them.
  const nn::Tensor& made_ready(MatrixView<const float> x) {
    require_finite(x);
    if (treated.size() == 0 && (feature_bits > 0 || normalisation.kind != Normalise::off)) {
      treated = Matrix<float>(x.rows, x.cols);
    }
    if (normalisation.kind == Normalise::standard) {
      standardise(x, normalisation, treated);
      x = treated;
    }
    if (feature_bits > 0) {
      ops::round_to_codes(x, feature_bits, ops::RoundingRange::matrix, range, treated);
      x = treated;
    }
    if (normalisation.kind == Normalise::rows) {
      row_normalise(x, treated);
      x = treated;
    }
    uploaded.upload(x, placement.stream);
    nn::Tensor* now = &uploaded;
    if (converts()) {
      input.copy_from(uploaded, placement.stream);
      now = &input;
    }
    nn::Tensor* other = &next;
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      nn::propagate({"propagated", nn::gcn_adjacency}, *now, *other, context);
      std::swap(now, other);
    }
    return *now;
  }

  void run(const nn::Input& x, MatrixView<float> logits) {
    const nn::Tensor* result = &model.forward(x, context);
    if (converts()) {
      downloaded.copy_from(*result, placement.stream);
      result = &downloaded;
    }
    ops::download(*result, logits, placement.device(), placement.stream);
  }

  void require_logits(MatrixView<float> logits) const {
    require_shape("logits", logits.rows, logits.cols, items, model.output_width(), logits.device);
  }

  nn::Placement placement;
  std::int64_t features;
  std::int64_t items;
  Normalisation normalisation;
  int feature_bits;  ///< 0: features are not rounded
  std::int64_t hops;
  std::vector<std::int64_t> class_values;
  nn::Model model;
  nn::Topology graph;
  std::optional<nn::Topology> pooling;
  ops::DenseWorkspace workspace;
  nn::Context context;
  DenseFeatures own;                       ///< of the data set, as they came
  std::optional<nn::InputFeatures> ready;  ///< of the data set, where they are not dense
  Matrix<float> treated;                   ///< features after normalising and rounding
  Matrix<float> range{1, 2};
  nn::Tensor uploaded;
  nn::Tensor input;  ///< in the model's precision
  nn::Tensor next;   ///< hops alternate between the two
  nn::Tensor downloaded;
};

Predictor::Predictor(const Checkpoint& checkpoint, const Graph& graph,
                     const PredictOptions& options)
    : state_(std::make_unique<State>(checked(checkpoint), config_of(checkpoint, options),
                                     problem_of(checkpoint, graph), options)) {}

Predictor::Predictor(const Checkpoint& checkpoint, const Dataset& dataset,
                     const PredictOptions& options) {
  const nn::ModelConfig config = config_of(checked(checkpoint), options);
  const Problem problem = problem_of(checkpoint, config, dataset, options);
  state_ = std::make_unique<State>(checkpoint, config, problem, options);
  if (const DenseFeatures* dense = dense_of(dataset)) {
    state_->own = *dense;
  } else {
    state_->ready.emplace(problem.features, options.placement, !state_->model.accepts_sparse(),
                          options.plans);
  }
}

Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
Predictor::~Predictor() = default;

void Predictor::run(MatrixView<const float> features, MatrixView<float> logits) {
  require_shape("features", features.rows, features.cols, num_vertices(), num_features(),
                features.device);
  state_->require_logits(logits);
  state_->run(state_->made_ready(features), logits);
}

void Predictor::run(MatrixView<float> logits) {
  if (state_->own != nullptr) return run(*state_->own, logits);
  if (!state_->ready) {
    reject("the predictor was made for a graph, which has no features", "Predictor",
           "give features to run, or make it for a data set");
  }
  state_->require_logits(logits);
  state_->run(state_->ready->input(), logits);
}

std::int64_t Predictor::num_vertices() const noexcept { return state_->graph.graph().num_rows(); }
std::int64_t Predictor::num_features() const noexcept { return state_->features; }
std::int64_t Predictor::num_items() const noexcept { return state_->items; }
std::int64_t Predictor::num_outputs() const noexcept { return state_->model.output_width(); }
const nn::Tensor& Predictor::embeddings() const { return state_->model.embeddings(); }

std::int64_t Predictor::class_of(std::span<const float> logits) const {
  const std::int64_t k =
      predicted_class(MatrixView<const float>(logits.data(), 1, std::ssize(logits)), 0);
  if (k < 0 || state_->class_values.empty()) return k;
  return state_->class_values[static_cast<std::size_t>(k)];
}

}  // namespace tessera::train
