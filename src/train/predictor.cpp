// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predictor.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/bit_network.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/nn/powers.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/train/metrics.hpp"
#include "tessera/train/problem.hpp"

#include "nn/step_runner.hpp"
#include "train/blockwise_pass.hpp"
#include "train/edges.hpp"
#include "train/features.hpp"
#include "train/integer_model.hpp"
#include "train/neighbourhood.hpp"
#include "train/number_targets.hpp"
#include "train/predictor_base.hpp"
#include "train/standardise.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

void require_shape(const char* name, std::int64_t rows, std::int64_t cols, std::int64_t wanted_rows,
                   std::int64_t wanted_cols, Device device, Device wanted_device = {}) {
  if (device != wanted_device) {
    reject(
        fmt::format("{} lie on {}, not on {}", name, to_string(device), to_string(wanted_device)),
        "Predictor",
        "give it memory of this process, or with a stream that of the predictor's device");
  }
  if (rows == wanted_rows && cols == wanted_cols) return;
  reject(
      fmt::format("{} are {} x {}, expected {} x {}", name, rows, cols, wanted_rows, wanted_cols),
      "Predictor", "features have a row per vertex, logits a row per item");
}

step::Placement in_fp32(step::Placement placement) {
  placement.precision = Precision::fp32;
  return placement;
}

/// Rounded numbers on the CPU.
PredictOptions for_ranges(PredictOptions options) {
  options.placement = {};
  options.plans.device = {};
  options.plans.memory = nullptr;
  options.plans.stream = {};
  options.integers = false;
  return options;
}

}  // namespace

struct Predictor::State : PredictorBase {
  State(const Checkpoint& checkpoint, const nn::ModelConfig& config, const Problem& problem,
        const PredictOptions& given)
      : State(PredictorBase(checkpoint, config, problem, given)) {
    reach = known_reach(checkpoint, config, options);
    if (feature_bits > 0 && options.integers) {
      rounded = std::make_unique<State>(checkpoint, config, problem, for_ranges(options));
    }
  }

  explicit State(PredictorBase base)
      : PredictorBase(std::move(base)),
        model(*weights),
        graph(whole_graph, placement.place(), options.plans),
        workspace(placement.place()),
        uploaded(in_fp32(placement)),
        next(in_fp32(placement)),
        input(placement),
        downloaded(in_fp32(placement)) {
    graph.set_edge_features(edge_features);
    if (pooling_graph) pooling.emplace(*pooling_graph, placement.place(), options.plans);
    context.graph = &graph;
    context.pooling = pooling ? &*pooling : nullptr;
    context.stream = placement.stream;
    context.workspace = &workspace;
    if (options.rows_at_a_time == 0) return;
    require_blocks(model.config(), pooling_graph.has_value());
    if (options.embeddings) {
      reject("what goes into the last layer is not kept of some rows at a time", "rows_at_a_time",
             "leave it out, or ask for no embeddings");
    }
    blocks.emplace(model, whole_graph, options.rows_at_a_time, options.plans);
  }

  bool normalises(Normalise kind) const {
    return normalisation.kind == kind && !options.features_are_normalised;
  }

  /// Numbers are converted where they are used, so that nothing is allocated for it.
  bool converts() const { return storage_of(placement.precision) != ElementType::fp32; }

  /// Dense features of the vertices of a topology, as the model reads them.
  const step::Tensor& made_ready(MatrixView<const float> x) { return made_ready(x, graph); }
  const step::Tensor& made_ready(MatrixView<const float> x, step::Topology& topology) {
    require_finite(x);
    const bool is_treated = feature_bits > 0 || normalisation.kind != Normalise::off;
    if (is_treated && treated.rows() != x.rows) treated = Matrix<float>(x.rows, x.cols);
    if (normalises(Normalise::standard)) {
      standardise(x, normalisation, treated);
      x = treated;
    }
    if (feature_bits > 0) {
      if (!is_calibrated) reach = found_reach(x);
      round_features(x, feature_bits, reach, treated);
      x = treated;
    }
    if (normalises(Normalise::rows)) {
      row_normalise(x, treated);
      x = treated;
    }
    uploaded.upload(x, placement.stream);
    return propagated(topology, placement.stream);
  }

  /// What was uploaded, as the model reads it.
  const step::Tensor& propagated(step::Topology& topology, Stream stream) {
    step::Tensor* now = &uploaded;
    step::Tensor* other = &next;
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      nn::propagate(*now, topology, *other, stream);
      std::swap(now, other);
    }
    if (!converts()) return *now;
    input.copy_from(*now, stream);
    return input;
  }

  /// Empty: that of all numbers.
  std::vector<float> found_reach(MatrixView<const float> x) const {
    if (options.ranges.keeps_all()) return {};
    return step::find_ranges(x, ops::RoundingRange::matrix, nullptr, options.ranges);
  }

  const step::Tensor& pass(const step::Input& x, const step::Context& own_context) {
    return passes ? passes->forward(x, x, false, own_context) : model.forward(x, own_context);
  }

  void run(const step::Input& x, MatrixView<float> logits) {
    deliver(blocks ? blocks->run(x, placement.stream, &workspace) : pass(x, context), logits);
  }

  void deliver(const step::Tensor& result, MatrixView<float> logits) {
    const bool narrow = storage_of(result.precision()) != ElementType::fp32;
    if (narrow) downloaded.copy_from(result, placement.stream);
    ops::download(narrow ? downloaded : result, logits, placement.device(), placement.stream);
    if (numbers) give_units(*numbers, logits);
  }

  /// All in memory of the device.
  void queue(MatrixView<const float> x, MatrixView<float> logits, Stream stream) {
    uploaded.copy_from(x, stream);
    step::Context own_context = context;
    own_context.stream = stream;
    const step::Tensor& result = pass(propagated(graph, stream), own_context);
    const bool narrow = storage_of(result.precision()) != ElementType::fp32;
    if (narrow) downloaded.copy_from(result, stream);
    ops::copy(narrow ? downloaded : result, logits, placement.device(), stream);
  }

  /// On the part of the graph that some vertices depend on.
  void run_near(MatrixView<const float> x, std::span<const VertexId> vertices,
                MatrixView<float> logits) {
    if (!here) here = in_place(whole_graph, {});
    const std::vector<VertexId> needed =
        neighbourhood(*here, vertices, hops + nn::num_hops(model.config()));
    step::Topology part(graph, needed);
    Matrix<float> rows(std::ssize(needed), x.cols);
    for (std::int64_t i = 0; i < rows.rows(); ++i) {
      const VertexId vertex = needed[static_cast<std::size_t>(i)];
      std::copy_n(x.row(vertex), x.cols, rows.row(i));
    }
    step::Context near = context;
    near.graph = &part;
    Matrix<float> found(rows.rows(), model.output_width());
    deliver(pass(made_ready(rows, part), near), found);
    std::vector<std::int64_t> places(static_cast<std::size_t>(num_vertices()), -1);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      places[static_cast<std::size_t>(needed[i])] = static_cast<std::int64_t>(i);
    }
    for (std::int64_t i = 0; i < logits.rows; ++i) {
      const VertexId vertex = vertices[static_cast<std::size_t>(i)];
      std::copy_n(found.row(places[static_cast<std::size_t>(vertex)]), found.cols(), logits.row(i));
    }
  }

  std::int64_t num_vertices() const { return whole_graph.num_rows(); }

  /// Ranges are those of a pass with rounded numbers, which found them unless they are given.
  void make_integers(const step::Input& x) {
    Matrix<float> logits(items, model.output_width());
    rounded->run(x, logits);
    integers.emplace(rounded->model, graph.graph(), nn::affine_of(rounded->reach, feature_bits),
                     normalisation.kind == Normalise::rows, options);
  }

  void run_in_integers(MatrixView<const float> x, MatrixView<float> logits) {
    require_finite(x);
    if (!integers) make_integers(rounded->made_ready(x));
    if (!integers->takes_plain_features()) {
      integers->take_treated(rounded->made_ready(x).as<float>());
    } else if (normalisation.kind == Normalise::standard) {
      // Rounded numbers have the codes of those that they were rounded from.
      integers->take(rounded->made_ready(x).as<float>());
    } else {
      integers->take(x);
    }
    run_integers(logits);
  }

  /// On the features that they took last.
  void run_integers(MatrixView<float> logits) {
    const step::Tensor& values = integers->run();
    const std::int64_t rest = integers->first_float_layer();
    if (rest < 0) return deliver(values, logits);
    if (converts()) input.copy_from(values, placement.stream);
    deliver(model.forward_from(rest, converts() ? input : values, context), logits);
  }

  BatchInput batch_input() {
    if (!integers || own == nullptr) {
      reject("no model in integers, or no dense features", "Predictor::batch_input",
             "make it for a data set with dense features and a model with bits");
    }
    // Rounded numbers have the codes of those that they were rounded from.
    const bool plain = integers->takes_plain_features();
    MatrixView<const float> x = *own;
    if (!plain || normalisation.kind == Normalise::standard) {
      x = rounded->made_ready(x).as<float>();
    }
    if (plain) integers->take(x);
    return {&integers->steps(), x, integers->feature_scale()};
  }

  void require_logits(MatrixView<float> logits) const {
    require_shape("logits", logits.rows, logits.cols, items, model.output_width(), logits.device);
  }

  nn::Model& model;
  std::optional<Graph> here;  ///< the graph in this process, once neighbourhoods are looked for
  std::unique_ptr<nn::StepRunner> passes;  ///< where the model is that of another predictor
  step::Topology graph;
  std::optional<step::Topology> pooling;
  ops::DenseWorkspace workspace;
  step::Context context;
  std::vector<float> reach;  ///< of features before they are rounded, of the last run if not given
  Matrix<float> treated;     ///< features after normalising and rounding
  step::Tensor uploaded;
  step::Tensor next;   ///< hops alternate between the two
  step::Tensor input;  ///< in the model's precision
  step::Tensor downloaded;
  std::optional<BlockwisePass> blocks;  ///< of passes over all vertices
  /// The same model with rounded numbers on the CPU, where this one is to run in integers.
  std::unique_ptr<State> rounded;
  std::optional<IntegerModel> integers;
  bool has_own_codes = false;  ///< of the data set, where its features are not dense
};

Predictor::Predictor(const Checkpoint& checkpoint, const Graph& graph,
                     const PredictOptions& options)
    : state_(std::make_unique<State>(checked(checkpoint), config_of(checkpoint, options),
                                     problem_of(checkpoint, graph), options)) {}

Predictor::Predictor(const Checkpoint& checkpoint, const Dataset& given,
                     const PredictOptions& options) {
  const nn::ModelConfig config = config_of(checked(checkpoint), options);
  const bool in_integers = options.integers && !config.bits.empty();
  require_edges(given, config);
  AlignedData data = aligned(checkpoint.input, given);
  if (nn::reads_edges(config)) data = with_aligned_edges(checkpoint.edge_input, std::move(data));
  const Dataset& dataset = data.dataset;
  const Problem problem =
      problem_of(checkpoint, config, dataset, in_integers ? for_ranges(options) : options);
  state_ = std::make_unique<State>(checkpoint, config, problem, options);
  state_->notes = std::move(data.notes);
  state_->notes.insert(state_->notes.end(), problem.notes.begin(), problem.notes.end());
  if (const DenseFeatures* dense = dense_of(dataset)) {
    state_->own = *dense;
    if (state_->rounded) {
      require_finite(**dense);
      state_->make_integers(state_->rounded->made_ready(**dense));
    }
    return;
  }
  if (!state_->rounded) {
    state_->ready = std::make_shared<nn::InputFeatures>(
        problem.features, options.placement, !state_->model.accepts_sparse(), options.plans);
    return;
  }
  nn::ModelConfig plain = config;
  plain.bits.clear();
  plain.precomputed = false;
  const bool standardises = checkpoint.normalisation.kind == Normalise::standard;
  const Features raw = prepare_features(dataset, plain, checkpoint.graph_task,
                                        standardises ? checkpoint.normalisation : Normalisation())
                           .features;
  state_->has_own_codes = true;
  nn::InputFeatures treated(problem.features, {}, !state_->model.accepts_sparse());
  state_->rounded->reach = problem.feature_reach;
  state_->make_integers(treated.input());
  IntegerModel& integers = *state_->integers;
  if (!integers.takes_plain_features()) {
    integers.take_treated(treated.input().dense("Predictor").as<float>());
  } else if (const auto* dense = std::get_if<DenseFeatures>(&raw)) {
    integers.take(**dense);
  } else {
    integers.take(std::get<SparseFeatures>(raw));
  }
}

Predictor::Predictor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
Predictor::~Predictor() = default;

void Predictor::run(MatrixView<const float> features, MatrixView<float> logits) {
  require_shape("features", features.rows, features.cols, num_vertices(), num_features(),
                features.device);
  state_->require_logits(logits);
  if (state_->rounded) return state_->run_in_integers(features, logits);
  state_->run(state_->made_ready(features), logits);
}

void Predictor::run(MatrixView<float> logits) {
  if (state_->own != nullptr) return run(*state_->own, logits);
  if (state_->has_own_codes) {
    state_->require_logits(logits);
    return state_->run_integers(logits);
  }
  if (!state_->ready) {
    reject("the predictor was made for a graph, which has no features", "Predictor",
           "give features to run, or make it for a data set");
  }
  state_->require_logits(logits);
  state_->run(state_->ready->input(), logits);
}

void Predictor::run(MatrixView<const float> features, MatrixView<float> logits, Stream stream) {
  State& state = *state_;
  const Device device = state.placement.device();
  if (state.feature_bits > 0) {
    reject("a model of few bits rounds features in this process", "Predictor",
           "give features and logits in memory of this process, without a stream");
  }
  if (state.numbers) {
    reject("a model of numbers brings them to their units in this process", "Predictor",
           "give features and logits in memory of this process, without a stream");
  }
  if (state.normalisation.kind != Normalise::off && !state.options.features_are_normalised) {
    reject(fmt::format("features on {} are not normalised there", to_string(device)), "Predictor",
           "normalise them as training did and set PredictOptions::features_are_normalised");
  }
  require_shape("features", features.rows, features.cols, num_vertices(), num_features(),
                features.device, device);
  require_shape("logits", logits.rows, logits.cols, num_items(), num_outputs(), logits.device,
                device);
  state.queue(features, logits, stream);
}

void Predictor::run(MatrixView<const float> features, std::span<const VertexId> vertices,
                    MatrixView<float> logits) {
  if (state_->pooling || state_->feature_bits > 0) {
    reject(state_->pooling ? "a model of graphs has no vertices to predict"
                           : "a model of few bits knows its ranges for the whole graph alone",
           "Predictor", "run it on everything");
  }
  require_shape("features", features.rows, features.cols, num_vertices(), num_features(),
                features.device);
  require_shape("logits", logits.rows, logits.cols, std::ssize(vertices), num_outputs(),
                logits.device);
  state_->run_near(features, vertices, logits);
}

Predictor Predictor::for_another_thread() const {
  if (state_->feature_bits > 0) {
    reject("models of few bits share no weights", "Predictor",
           "make another predictor of the checkpoint");
  }
  auto state = std::make_unique<State>(static_cast<const PredictorBase&>(*state_));
  nn::Model& model = state->model;
  state->passes = std::make_unique<nn::StepRunner>(
      model, [&model](const nn::StepInputs& in) { return model.append(in); });
  if (state->ready && state->ready->sparse() != nullptr) {
    state->ready = std::make_shared<nn::InputFeatures>(
        Features(state->ready->sparse()->graph()), state->placement, false, state->options.plans);
  }
  return Predictor(std::move(state));
}

std::int64_t Predictor::num_vertices() const noexcept { return state_->num_vertices(); }
std::int64_t Predictor::num_features() const noexcept { return state_->features; }
std::int64_t Predictor::num_items() const noexcept { return state_->items; }
std::int64_t Predictor::num_outputs() const noexcept { return state_->model.output_width(); }

const step::Tensor& Predictor::embeddings() const {
  // Where there are none, the model says so.
  const bool from_codes = state_->integers && state_->integers->first_float_layer() < 0 &&
                          state_->integers->has_embeddings();
  if (from_codes) return state_->integers->embeddings();
  const step::Tensor* const kept = state_->passes ? state_->passes->kept() : nullptr;
  return kept != nullptr ? *kept : state_->model.embeddings();
}

const std::vector<std::string>& Predictor::notes() const noexcept { return state_->notes; }

ops::Explanation Predictor::explain() const {
  ops::Explanation explanation;
  if (state_->integers) {
    explanation = state_->integers->explain();
    explanation.summary += state_->is_calibrated ? ", with the ranges of the checkpoint"
                                                 : ", with the ranges of the first features";
    return explanation;
  }
  explanation.summary = state_->rounded ? "in integers, once the first run has found the ranges"
                        : state_->feature_bits > 0 ? "with rounded numbers in floating point"
                                                   : "in floating point";
  return explanation;
}

Predictor::BatchInput Predictor::batch_input() { return state_->batch_input(); }

std::vector<StoredTensor> Predictor::ranges() const {
  if (state_->feature_bits == 0) return {};
  State& finder = state_->rounded ? *state_->rounded : *state_;
  return store_ranges(finder.model.rounders(), finder.reach);
}

std::optional<CodeMemory> Predictor::code_memory() const {
  if (!state_->integers) return {};
  return state_->integers->memory();
}

std::int64_t Predictor::class_of(std::span<const float> logits) const {
  const std::int64_t k =
      predicted_class(MatrixView<const float>(logits.data(), 1, std::ssize(logits)), 0);
  if (k < 0 || state_->class_values.empty()) return k;
  return state_->class_values[static_cast<std::size_t>(k)];
}

}  // namespace tessera::train
