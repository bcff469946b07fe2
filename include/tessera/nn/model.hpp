// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/nn/config.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/sequential.hpp"

namespace tessera::nn {

/// A stack of layers for node classification, or with a readout for graph classification: what goes
/// in is a data set's features, what comes out is one row of logits per vertex or graph.
class Model final : public Layer {
 public:
  /// Parameters are drawn from `seed`.
  Model(const ModelConfig& config, std::int64_t features, std::int64_t outputs,
        std::uint64_t seed = 0, Placement placement = {});

  const ModelConfig& config() const noexcept { return config_; }

  const Tensor& forward(const Input& input, const Context& context) override;
  /// Layer `first` of its stack and those behind it (`BitSteps::first_float_layer`).
  const Tensor& forward_from(std::int64_t first, const Input& input, const Context& context) {
    return stack_.forward_from(first, input, context);
  }
  bool append_to(BitSteps& steps) const override { return stack_.append_to(steps); }
  bool lets_calls_wait() const override { return true; }
  /// Returns nullptr unless the gradient of the features was asked for.
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  Parameter* leave_sum(const Context& context) override { return stack_.leave_sum(context); }
  /// What went into the last layer in the last forward pass.
  const Tensor& embeddings() const;

  std::int64_t num_graphs() const override { return stack_.num_graphs(); }
  std::int64_t input_width() const override { return stack_.input_width(); }
  std::int64_t output_width() const override { return stack_.output_width(); }
  std::string describe() const override;
  bool accepts_sparse() const override { return stack_.accepts_sparse(); }
  void set_needs_input_gradient(bool needs) override;

 private:
  ModelConfig config_;
  InputDropout input_dropout_;
  Sequential stack_;
  Input input_;
};

}  // namespace tessera::nn
