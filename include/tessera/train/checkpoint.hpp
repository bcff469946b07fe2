// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// A tensor's bytes and how to read them.
struct StoredTensor {
  std::string path;
  ExtraArray array;
};

/// How far a run has come.
struct RunPosition {
  std::int64_t run = 0;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t best_epoch = 0;
  Evaluation best;
  /// For early stopping: the best seen so far, each by itself, and the epochs since.
  double highest_metric = 0;
  double lowest_loss = 0;
  std::int64_t waited = 0;
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
  bool row_normalised = false;
  std::vector<std::int64_t> class_values;
  Metric metric = Metric::accuracy;

  std::vector<RunReport> finished;  ///< without curves
  RunPosition position;             ///< of the run under way, or of none if all are finished
  std::vector<EpochRecord> curve;   ///< of the run under way
  std::vector<StoredTensor> current;
  std::vector<StoredTensor> moments;

  std::int64_t best_run = -1;  ///< -1: no epoch has been evaluated yet
  std::int64_t best_epoch = 0;
  Evaluation best;
  std::vector<StoredTensor> weights;  ///< of the best epoch of all runs
};

/// The file appears whole or not at all; every part has a checksum.
void save(const Checkpoint& checkpoint, const std::string& path);
/// Damaged files, and files that are no checkpoints, are `bad_data` errors.
Checkpoint load_checkpoint(const std::string& path);

/// Copies tensors out of and into memory of any device. `restore` throws `invalid_argument` where a
/// tensor is missing, left over or of another shape.
std::vector<StoredTensor> store(const std::vector<nn::NamedTensor>& tensors);
void restore(const std::vector<StoredTensor>& stored, const std::vector<nn::NamedTensor>& tensors,
             const std::string& where);

}  // namespace tessera::train
