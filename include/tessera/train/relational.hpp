// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/relational_data.hpp"
#include "tessera/nn/relational_model.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/report.hpp"

/// Learning the classes of one kind of vertices in a graph with several kinds and relations.
namespace tessera::train {

struct RelationalOptions {
  nn::RelationalModelOptions model = {};
  /// Steps see the whole graph. Files of checkpoints are written by `save`.
  TrainOptions training = {};
};
/// Adam at 0.01 with a weight decay of 0.0005, for 100 epochs.
RelationalOptions relational_options();

/// What a model knows of a kind of vertices.
struct KnownKind {
  std::string name;
  /// Of a kind with features what these were like; 0 of them: every vertex has an embedding.
  std::int64_t features = 0;
  ModelInput input = {};
  Normalisation normalisation = {};
  /// Of a kind without features the vertices that have an embedding, which go by their names; where
  /// they have none, by their numbers.
  std::int64_t embedded = 0;
  Names vertices = {};
};

/// The best weights of a training, and what it takes to predict with them.
struct RelationalCheckpoint {
  nn::RelationalModelOptions model;
  std::vector<KnownKind> kinds;
  std::vector<Relation> relations;
  std::int32_t labelled = 0;  ///< the kind that is predicted
  std::int64_t outputs = 0;
  bool multi_label = false;
  Metric metric = Metric::accuracy;
  std::vector<std::int64_t> class_values;  ///< empty: classes are called 0, 1, …
  Names class_names;
  Split split;              ///< of the vertices of that kind, in the best run
  std::string fingerprint;  ///< of the graph that it was trained on
  BestEpoch best;
  std::vector<StoredTensor> weights;
};

/// Trains a model as `fit` does; `kept` becomes its best weights. Kinds that have features and
/// vertices are brought to the form of `TrainOptions::normalise`, each by itself; the vertices of
/// all others learn an embedding. Throws `bad_data` unless one kind has labels, and
/// `invalid_argument` for what `fit` refuses, for numbers to predict and for batches.
TrainReport fit_relational(const RelationalData& data, const RelationalOptions& options,
                           RelationalCheckpoint* kept = nullptr);

/// Predicts the vertices of the kind that was learned. Kinds and relations must be those of the
/// training, and vertices without features ones that it has seen.
Prediction predict(const RelationalCheckpoint& checkpoint, const RelationalData& data,
                   const step::Placement& placement = {});

/// What the functions that judge predictions know of a checkpoint: its classes, and its split where
/// this is the data that it was trained on.
Checkpoint judged_by(const RelationalCheckpoint& checkpoint, const RelationalData& data);

/// "rgcn, 2 layers of 64": in words.
std::string describe(const nn::RelationalModelOptions& options);

/// The file appears whole or not at all; every part has a checksum.
void save(const RelationalCheckpoint& checkpoint, const std::string& path);
/// A file that is damaged, or no such one, is a `bad_data` error.
RelationalCheckpoint load_relational_checkpoint(const std::string& path);
/// Whether a file, whatever its name, says of itself that it is one.
bool holds_relational_checkpoint(const std::string& path);

}  // namespace tessera::train
