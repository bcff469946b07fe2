// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/step/range_search.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/split.hpp"

namespace tessera::train {

/// What features and activations of a model in integers take, in bytes.
struct CodeMemory {
  std::int64_t features = 0;
  std::int64_t activations = 0;    ///< of the layer that runs and the one before it
  std::int64_t full_features = 0;  ///< the same in fp32
  std::int64_t full_activations = 0;
};

struct Prediction {
  bool graph_task = false;
  bool multi_label = false;
  /// One row per vertex or graph. Of a model of numbers these, in their units.
  Matrix<float> logits;
  /// The class of each item as the data calls it; empty for multi-label, and for numbers.
  std::vector<std::int64_t> classes;
  Names item_names;           ///< what the vertices are called in the data; empty: by number
  Names class_names;          ///< what the classes were called in the data the model was trained on
  Matrix<float> embeddings;   ///< what went into the last layer, where asked for
  ops::Explanation computed;  ///< as `Predictor::explain`
  /// The class that each column of the logits stands for; of several labels the number of each.
  std::vector<std::int64_t> class_values = {};
  /// What the data says that the items are, as `TrueClasses`; empty where it says it of none. Of
  /// several labels 0 and 1; null where it has no such labels.
  std::vector<std::optional<std::int64_t>> true_classes = {};
  MultiLabels true_labels = {};
  std::optional<NumberOutputs> numbers = {};  ///< what the columns are, of a model of numbers
  DenseFeatures true_numbers = {};            ///< as `TrueNumbers`; null: none
  std::vector<SplitPart> parts = {};          ///< as `item_parts`
  std::vector<std::string> notes = {};        ///< as `Predictor::notes`
  /// With bits: those that it was computed with, as a checkpoint keeps them.
  std::vector<StoredTensor> ranges = {};
  std::optional<CodeMemory> memory = {};  ///< in integers, of the whole graph
  std::int64_t batches = 0;               ///< of parts; 0: the whole graph at once
  std::int64_t bytes_copied = 0;          ///< of batches, to the device
};

/// What a class is called: by its name, or its number where it has none. Its number is one of
/// `class_values`.
std::string class_name(const Prediction& prediction, std::int64_t number);

struct PredictOptions {
  bool embeddings = false;
  step::Placement placement;
  /// How plans are made; device and kernel play no part. `epochs` says how often they will be used.
  ops::PlanOptions plans;
  /// As `ModelConfig::bits`, instead of the checkpoint's own: quantisation after training.
  std::vector<std::int64_t> bits = {};
  /// Models of few bits are computed in integers, the same on every device. Otherwise with rounded
  /// numbers in floating point, as in training. Only the latter can have edges with weights of
  /// their own, residuals, and activations other than relu.
  bool integers = true;
  /// Ranges are those of the checkpoint, where it has some for these bits. With `calibrate`, or
  /// where it has none, a pass over the first features finds those of integers, and rounded numbers
  /// have the ranges of every run.
  bool calibrate = false;
  /// How ranges are found where the checkpoint's are not taken; others than those of all numbers
  /// are always found anew. Ranges of sparse features have all numbers unless bounds are given.
  nn::RangeSearch ranges = {};
  /// `Predictor` alone: features that runs are given are normalised already, as training did it.
  bool features_are_normalised = false;
  /// Not null, for a model in integers that classifies vertices: the graph is cut into these parts,
  /// edges between them are left out, and so many parts at a time go to the device, as `BitBatches`
  /// (Cluster-GCN). Without ranges of a checkpoint those of the cut graph are found.
  std::shared_ptr<const Partition> partition = {};
  std::int64_t parts_per_batch = 20;
  /// Of vertices with all bits, for passes over all: layer by layer, over so many at a time, in
  /// little memory; 0: over all. The results are the same within rounding.
  std::int64_t rows_at_a_time = 0;
};

/// What the weights of a model take in bytes: those of layers with bits in so many, ranges
/// included, all others in fp32.
std::int64_t weight_bytes(const Checkpoint& checkpoint, const std::vector<std::int64_t>& bits);

/// The checkpoint as a model of so many bits: with these ranges, and what was lost by them.
Checkpoint quantised(Checkpoint checkpoint, const std::vector<std::int64_t>& bits,
                     std::vector<StoredTensor> ranges, std::optional<double> lost);

/// Runs a checkpoint's best weights on a data set, which needs no labels. Its features are found by
/// their names, as `aligned` does; where they have none, another number of them than the model's is
/// an `invalid_argument` error.
Prediction predict(const Checkpoint& checkpoint, const Dataset& dataset,
                   const PredictOptions& options = {});

/// The items that the checkpoint's model was tested on, which it has not learnt from; none where
/// this is not the graph that it was trained on.
std::vector<std::int64_t> test_items(const Checkpoint& checkpoint, const Dataset& dataset);

/// Which part of the split each item was in when the model was trained; on another graph, which
/// part of the data's own split it is in. Empty: there is no split.
std::vector<SplitPart> item_parts(const Checkpoint& checkpoint, const Dataset& dataset);

/// What tables say of each item: all there is to say, or its class and its probability alone (of
/// several labels, which are on).
enum class PredictionForm { full, brief };

/// Writes by the file's ending, under the names of items and classes (docs/formats.md). .csv: a
/// table; .json: the same as objects; .npz: arrays that NumPy loads without pickle; .txt: the
/// number of one class per line. The form is that of .csv and .json.
void save(const Prediction& prediction, const std::string& path,
          PredictionForm form = PredictionForm::full);
/// How many items have a name that begins as a spreadsheet's formula does, and gets an apostrophe
/// in tables.
std::int64_t num_formula_names(const Prediction& prediction);
/// Throws `invalid_argument` where `save` could not write such a file. Only one class per item, and
/// thus neither several labels nor numbers, fits into a .txt.
void require_prediction_ending(const std::string& path, bool more_than_one_class);

/// Writes the embeddings with the names of the items: .csv a table, .npz the arrays `embeddings`
/// and, where items have names, `id`. Another ending is an `invalid_argument` error, which
/// `require_embeddings_ending` gives beforehand.
void save_embeddings(const Prediction& prediction, const std::string& path);
void require_embeddings_ending(const std::string& path);

}  // namespace tessera::train
