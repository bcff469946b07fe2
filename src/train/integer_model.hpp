// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/nn/bit_network.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/train/predict.hpp"

#include "train/bit_features.hpp"

namespace tessera::train {

/// A model of few bits made ready to be computed in integers on one graph.
class IntegerModel {
 public:
  /// `model` is on the CPU, and has made a forward pass on the features that ranges are taken from;
  /// `feature_range` is theirs, before any normalisation.
  IntegerModel(nn::Model& model, const Graph& graph, const quant::Affine& feature_range,
               bool row_normalised, const PredictOptions& options);

  /// Whether features are taken as they came (`take`), or as the first layer reads them
  /// (`take_treated`).
  bool takes_plain_features() const noexcept { return steps_.takes_plain_features(); }
  void take(MatrixView<const float> features);
  void take(const Graph& sparse);
  void take_treated(MatrixView<const float> features);

  /// On the features taken last. In fp32, on the device; layers of the model from
  /// `first_float_layer` on (-1: there are none) are still to come.
  const step::Tensor& run();
  std::int64_t first_float_layer() const noexcept { return steps_.first_float_layer(); }

  /// True where there is a layer before the last one.
  bool has_embeddings() const noexcept { return steps_.last_layer() > 0; }

  /// What went into the last layer in the last run, where it was asked for.
  const step::Tensor& embeddings();
  ops::Explanation explain() const { return network_->explain(); }
  CodeMemory memory() const;
  const nn::BitSteps& steps() const noexcept { return steps_; }
  /// What the rows of the features taken last are multiplied by after they were rounded; empty: 1.
  std::span<const float> feature_scale() const {
    return row_normalised_ ? features_->row_scale() : std::span<const float>();
  }

 private:
  nn::BitSteps steps_;
  bool row_normalised_;
  step::Placement placement_;  ///< in fp32
  nn::BitAdjacency adjacency_;
  std::optional<BitFeatures> features_;
  std::optional<nn::BitNetwork> network_;
  Buffer<std::uint32_t> words_;  ///< of the features, on the device
  step::Tensor feature_scale_, row_scale_, col_scale_, row_weights_;
  step::Tensor values_, embeddings_;
};

}  // namespace tessera::train
