// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/link_model.hpp"
#include "tessera/train/model_input.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/report.hpp"
#include "tessera/train/split.hpp"

namespace tessera::train {

/// A tensor's bytes and how to read them.
struct StoredTensor {
  std::string path;
  ExtraArray array;
};

/// A run as it stands after the last epoch of its curve. What else is to be known of it (its best
/// epoch, how long it has waited for a better one) follows from the curve.
struct RunState {
  std::int64_t step = 0;
  std::vector<EpochRecord> curve;
  std::vector<StoredTensor> model;
  std::vector<StoredTensor> moments;  ///< the optimiser's
};

/// The epoch that is best on the validation items; among equals the first of the first run.
struct BestEpoch {
  std::int64_t run = -1;  ///< -1: no epoch has been evaluated yet
  std::int64_t epoch = 0;
  Evaluation evaluation;
};

/// What `fit` writes: all it takes to go on to the same bits, and the best weights so far.
struct Checkpoint {
  nn::ModelConfig model;
  /// Model, training and data as text: what a resume must agree with.
  std::vector<Setting> settings;
  std::int64_t features = 0;
  std::int64_t outputs = 0;
  bool graph_task = false;
  bool multi_label = false;
  /// Of a model that predicts links: `outputs` is that of its encoder then, weights are those
  /// of a `nn::LinkModel`, and items of the split are edges in the order of the graph's columns.
  std::optional<nn::LinkDecoderKind> decoder = {};
  bool variational = false;     ///< of a model of links: see `nn::LinkModelOptions`
  Kinds kinds = {};             ///< of a model of links between two kinds of vertices
  ModelInput input;             ///< what its data was like; empty in files of version 0.1.0
  Normalisation normalisation;  ///< of features, before the model sees them
  ModelInput edge_input = {};   ///< the same of edges, of a model that reads their features
  Normalisation edge_normalisation = {};
  std::vector<std::int64_t> class_values;
  Names class_names;  ///< of the class values; empty: they have none
  Metric metric = Metric::accuracy;
  std::optional<NumberOutputs> numbers = {};  ///< of a model that predicts numbers, in its best run
  /// What the best weights were trained, chosen and tested on; empty in files of version 0.1.0.
  Split split;

  /// The plans it was trained with, as the text of an `ops::PlanStore`; empty where batches differ
  /// from epoch to epoch. They stay the same when training goes on.
  std::string plans;
  std::vector<RunState> runs;         ///< those that have begun; finished ones can be prolonged
  std::vector<StoredTensor> weights;  ///< of the best epoch of all runs
  /// Of a model with bits: how far features and activations reach above and below 0, two numbers
  /// for each range, as the evaluation of the best epoch found them. Empty: predictions find them.
  std::vector<StoredTensor> ranges;
  /// Of the metric on the test items, against the same model with all bits; absent: not compared.
  std::optional<double> lost;
};

/// Of a model of links: the width of its embeddings.
std::int64_t embedding_width(const Checkpoint& checkpoint);

BestEpoch best_epoch(const Checkpoint& checkpoint);

/// Whether the bits came after the training, by `quantised`: then its accuracies are those of all
/// bits, and it cannot go on.
bool quantised_after_training(const Checkpoint& checkpoint);

/// Throws `bad_data` where a part contradicts another: a model that cannot be, tensors that are not
/// its own, a run that is longer than asked for. Costs no more than what the tensors take.
void validate(const Checkpoint& checkpoint, const std::string& where);

/// The file appears whole or not at all; every part has a checksum.
void save(const Checkpoint& checkpoint, const std::string& path);
/// A file is hostile until proven otherwise: damaged ones, those that are no checkpoints, and those
/// that do not pass `validate` are `bad_data` errors.
Checkpoint load_checkpoint(const std::string& path);
/// Whether a file, whatever its name, is a container that says of itself that it is a checkpoint.
bool holds_checkpoint(const std::string& path);

/// Copies tensors out of and into memory of any device. `restore` throws `invalid_argument` where a
/// tensor is missing, left over or of another shape; `require_same_tensors` is that check alone.
std::vector<StoredTensor> store(const std::vector<nn::NamedTensor>& tensors);
void require_same_tensors(const std::vector<StoredTensor>& stored,
                          const std::vector<nn::NamedTensor>& tensors, const std::string& where);
void restore(const std::vector<StoredTensor>& stored, const std::vector<nn::NamedTensor>& tensors,
             const std::string& where);

/// The ranges of the last pass, and those of the features before it. `restore_ranges` fixes them.
std::vector<StoredTensor> store_ranges(const std::vector<nn::NamedRounder>& rounders,
                                       const std::vector<float>& feature_reach);
void restore_ranges(const std::vector<StoredTensor>& ranges,
                    const std::vector<nn::NamedRounder>& rounders, const std::string& where);
/// How far the features reach; empty: no such range is stored.
std::vector<float> stored_feature_reach(const std::vector<StoredTensor>& ranges);

}  // namespace tessera::train
