// SPDX-License-Identifier: Apache-2.0
#include "train/predictor_base.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "train/edges.hpp"
#include "train/features.hpp"
#include "train/integer_model.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

/// Whether predictions with these bits have the ranges of the training.
bool has_ranges(const Checkpoint& checkpoint, const nn::ModelConfig& config,
                const PredictOptions& options) {
  if (options.calibrate || !options.ranges.keeps_all() || checkpoint.ranges.empty()) return false;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (nn::layer_bits(config, layer) != nn::layer_bits(checkpoint.model, layer)) return false;
  }
  return true;
}

}  // namespace

const Checkpoint& checked(const Checkpoint& checkpoint) {
  if (checkpoint.weights.empty()) {
    reject("the checkpoint holds no trained weights", "checkpoint", "train for at least one epoch");
  }
  if (checkpoint.decoder) {
    reject("the checkpoint predicts links, not classes", "checkpoint",
           "use train::LinkPredictor, or 'tessera predict' with --links or --top");
  }
  validate(checkpoint, "checkpoint");
  return checkpoint;
}

const DenseFeatures* dense_of(const Dataset& dataset) {
  return std::get_if<DenseFeatures>(&dataset.features);
}

std::vector<float> known_reach(const Checkpoint& checkpoint, const nn::ModelConfig& config,
                               const PredictOptions& options) {
  if (options.ranges.bounds) {
    return step::find_ranges({}, ops::RoundingRange::matrix, nullptr, options.ranges);
  }
  if (!has_ranges(checkpoint, config, options)) return {};
  return stored_feature_reach(checkpoint.ranges);
}

nn::ModelConfig config_of(const Checkpoint& checkpoint, const PredictOptions& options) {
  nn::ModelConfig config = checkpoint.model;
  if (!options.bits.empty()) config.bits = options.bits;
  if (checkpoint.numbers && !config.bits.empty()) {
    reject("models of few bits predict classes, not numbers", "bits", "leave them out");
  }
  nn::validate(config);
  return config;
}

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
                                     is_dense ? Normalisation() : checkpoint.normalisation, how,
                                     known_reach(checkpoint, model, options));
  if (problem.num_features() != checkpoint.features) {
    reject(fmt::format("the data has {} features, the checkpoint's model {}",
                       problem.num_features(), checkpoint.features),
           problem.name, "use data of the kind the model was trained on");
  }
  const std::int64_t edge_features = fitted(config, problem).edge_features;
  if (edge_features != checkpoint.model.edge_features) {
    reject(fmt::format("the edges have {} features, those that the model was trained with {}",
                       edge_features, checkpoint.model.edge_features),
           problem.name, "use data of the kind the model was trained on");
  }
  normalise_edges(checkpoint.edge_normalisation, problem);
  return problem;
}

Problem problem_of(const Checkpoint& checkpoint, const Graph& graph) {
  if (checkpoint.graph_task) {
    reject("the model classifies graphs of a union, but was given one graph", "Predictor",
           "give it a data set with graph ids");
  }
  if (nn::reads_edges(checkpoint.model)) {
    reject("the model reads features of edges, but was given a graph alone", "Predictor",
           "give it a data set, whose edges have features");
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

PredictorBase::PredictorBase(const Checkpoint& checkpoint, const nn::ModelConfig& config,
                             const Problem& problem, const PredictOptions& given)
    : options(given),
      placement(options.placement),
      features(checkpoint.features),
      items(problem.num_items),
      normalisation(checkpoint.normalisation),
      feature_bits(config.bits.empty() ? 0 : nn::layer_bits(config, 0)),
      hops(config.precomputed ? nn::precomputed_hops(config) : 0),
      is_calibrated(has_ranges(checkpoint, config, options)),
      class_values(checkpoint.class_values),
      numbers(checkpoint.numbers),
      weights(std::make_shared<nn::Model>(config, checkpoint.features, checkpoint.outputs, 0,
                                          placement)),
      whole_graph(problem.graph) {
  nn::Model& model = *weights;
  restore(checkpoint.weights, model.state(), "checkpoint");
  model.round_parameters(placement.stream);
  if (options.embeddings) model.keep_embeddings();
  if (is_calibrated) restore_ranges(checkpoint.ranges, model.rounders(), "checkpoint");
  edge_features = features_of_edges(problem, placement);
  options.ranges.validate();
  for (const auto& named : model.rounders()) named.rounder->set_search(options.ranges);
  if (problem.graph_task) {
    pooling_graph = step::pooling_graph(problem.graph_ids, problem.num_items);
  }
}

}  // namespace tessera::train
