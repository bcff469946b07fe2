// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/input.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {

/// Throws unless a checkpoint can predict.
const Checkpoint& checked(const Checkpoint& checkpoint);

const DenseFeatures* dense_of(const Dataset& dataset);

/// How far the features reached in training; empty: unknown.
std::vector<float> known_reach(const Checkpoint& checkpoint, const nn::ModelConfig& config,
                               const PredictOptions& options);

/// The checkpoint's model with the bits that are asked for.
nn::ModelConfig config_of(const Checkpoint& checkpoint, const PredictOptions& options);

/// What a data set brings. Its features are made ready here only if they are not dense: dense ones
/// are treated in every run.
Problem problem_of(const Checkpoint& checkpoint, const nn::ModelConfig& model,
                   const Dataset& dataset, const PredictOptions& options);
Problem problem_of(const Checkpoint& checkpoint, const Graph& graph);

/// What predictors of several threads have in common.
struct PredictorBase {
  PredictorBase(const Checkpoint& checkpoint, const nn::ModelConfig& config, const Problem& problem,
                const PredictOptions& given);

  PredictOptions options;
  step::Placement placement;
  std::int64_t features;
  std::int64_t items;
  Normalisation normalisation;
  int feature_bits;  ///< 0: features are not rounded
  std::int64_t hops;
  bool is_calibrated;  ///< with the ranges of the checkpoint
  std::vector<std::int64_t> class_values;
  std::optional<NumberOutputs> numbers;
  std::shared_ptr<nn::Model> weights;
  Graph whole_graph;
  std::optional<Graph> pooling_graph;
  std::shared_ptr<const step::Tensor> edge_features;  ///< null: the model reads none
  DenseFeatures own;                                  ///< of the data set, as they came
  std::shared_ptr<nn::InputFeatures> ready;           ///< of the data set, where they are not dense
  std::vector<std::string> notes;
};

}  // namespace tessera::train
