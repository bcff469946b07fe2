// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/dense.hpp"
#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct GinOptions {
  std::int64_t in = 0;
  std::int64_t hidden = 0;  ///< of the perceptron; 0: as `out`
  std::int64_t out = 0;
  double eps = 0;
  bool train_eps = false;
  bool batch_norm = true;  ///< after the perceptron's first layer
  EpilogueOptions output = {};
  int bits = 0;  ///< of weights and of what is summed; 0: all of them
  /// Whether the input is rounded to as many bits before it meets the weights; features have been.
  bool rounds_input = true;
  /// How many features each edge has that messages are made of; 0: edges play no part.
  std::int64_t edge_features = 0;
};

/// Xu et al. (2019): Y = MLP((1 + eps) X_target + sum of X_source), where MLP is Linear, batch
/// norm, ReLU, Linear. PyG's GINConv around Sequential(Linear, BatchNorm1d, ReLU, Linear):
/// `nn.0.weight`, `nn.1.weight`, …, `nn.3.weight`, `eps` (without batch norm the second Linear is
/// `nn.2`). Edge weights do not count.
///
/// With features of edges, that of Hu et al. (2020): sums are of relu(X_source + E W^T + b), where
/// E are those that the graph brings (`step::Topology::edge_features`). PyG's GINEConv with an
/// `edge_dim`: `lin.weight`, `lin.bias` beside the others. Its input is dense.
class Gin final : public PairLayer {
 public:
  explicit Gin(const GinOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  bool accepts_sparse() const override { return !edges_; }

 private:
  step::Value build(const StepInputs& in) override;
  /// (1 + eps) target + sum of source.
  step::Value sum(const StepInputs& in, step::Value sources, step::Value targets);
  /// (1 + eps) target + sum of what sources and edges say.
  step::Value sum_of_messages(const StepInputs& in);
  /// The same times the first weight, with few bits or with all.
  step::Value transformed(const StepInputs& in);

  GinOptions options_;
  Parameter eps_;
  Parameter weight_;
  Rounder weight_rounder_, source_rounder_, target_rounder_, inner_rounder_;
  Epilogue first_epilogue_;      ///< bias, and ReLU where there is no batch norm
  std::optional<Linear> edges_;  ///< of the features of edges, to the width of the input
  std::optional<BatchNorm> norm_;
  Linear second_;
};

}  // namespace tessera::nn
