// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/nn/bit_network.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::train {

/// A checkpoint's best weights made ready for one graph, to be run again and again: it plans once,
/// treats features as training did, and allocates nothing after the first run. The results are
/// those of `predict`, bit for bit; in integers without ranges of the checkpoint they are if the
/// first features were the same, whose ranges stay.
///
/// One thread at a time: `for_another_thread` makes one more. Nothing of the checkpoint is needed
/// after the constructor.
class Predictor {
 public:
  /// Vertices of this graph are classified. A model that classifies graphs, or a graph that is not
  /// square, is an `invalid_argument` error.
  Predictor(const Checkpoint& checkpoint, const Graph& graph, const PredictOptions& options = {});
  /// The same for a data set, which brings features of its own and, where graphs are classified,
  /// says which vertices belong to which. It needs no labels. Its features are found by their
  /// names, as `aligned` does.
  Predictor(const Checkpoint& checkpoint, const Dataset& dataset,
            const PredictOptions& options = {});
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  ~Predictor();

  /// Both in memory of this process: `features` is num_vertices() x num_features(), in the order of
  /// training (`Checkpoint::input` has their names) and as they were before any normalisation,
  /// `logits` num_items() x num_outputs(), of a model of numbers in their units. Returns when the
  /// logits are there. Another shape is an `invalid_argument` error, a feature that is not finite a
  /// `bad_data` error; the predictor can go on after both.
  void run(MatrixView<const float> features, MatrixView<float> logits);
  /// On the features of the data set that it was made for.
  void run(MatrixView<float> logits);
  /// Both in memory of the predictor's device: the work is queued on the stream, and nothing is
  /// waited for after the first run. Features are not checked. Those of a model that was trained on
  /// normalised ones come normalised (`PredictOptions::features_are_normalised`); models of few
  /// bits and of numbers are an `invalid_argument` error.
  void run(MatrixView<const float> features, MatrixView<float> logits, Stream stream);
  /// For some vertices, a row of logits each, of what they depend on alone: as many edges away as
  /// the model has layers. The same numbers within rounding. `features` and `logits` as in the
  /// first `run`. Models of graphs and of few bits are an `invalid_argument` error.
  void run(MatrixView<const float> features, std::span<const VertexId> vertices,
           MatrixView<float> logits);

  /// One with the same weights, which shares them, the graph and its features with this one, and
  /// has plans and buffers of its own. Either may go first. Models of few bits are an
  /// `invalid_argument` error.
  Predictor for_another_thread() const;

  std::int64_t num_vertices() const noexcept;
  std::int64_t num_features() const noexcept;
  std::int64_t num_items() const noexcept;  ///< vertices, or the graphs of a union
  std::int64_t num_outputs() const noexcept;

  /// Of a data set: what was done so that it fits the model, and in what it differs from that of
  /// training.
  const std::vector<std::string>& notes() const noexcept;

  /// How it computes: for a model in integers a child for every product, which names its kernel,
  /// from the first run on, or at once where it was made for a data set.
  ops::Explanation explain() const;

  /// Of a model with bits, as a checkpoint keeps them: the ranges that it computes with, once they
  /// are known.
  std::vector<StoredTensor> ranges() const;
  /// Of a model in integers, from the first run on, or at once where it was made for a data set.
  std::optional<CodeMemory> code_memory() const;

  /// What `BitBatches` are made of, for a model in integers that was made for a data set with dense
  /// features. Views of memory of the predictor.
  struct BatchInput {
    const nn::BitSteps* steps = nullptr;
    MatrixView<const float> features = {};
    std::span<const float> feature_scale = {};
  };
  BatchInput batch_input();

  /// What went into the last layer in the last run; a model in integers keeps it only where
  /// `PredictOptions::embeddings` asks for it. Throws `unsupported` for a model of one layer.
  const step::Tensor& embeddings() const;
  /// The class that a row of logits speaks for, as the training data called it; -1 where a logit is
  /// not a number. Of several labels each logit above 0 is a yes instead.
  std::int64_t class_of(std::span<const float> logits) const;

 private:
  struct State;
  explicit Predictor(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tessera::train
