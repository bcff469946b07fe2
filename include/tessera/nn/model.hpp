// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/nn/bit_network.hpp"
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
  ~Model() override;

  const ModelConfig& config() const noexcept { return config_; }

  const Tensor& forward(const Input& input, const Context& context) override;
  /// Returns nullptr unless the gradient of the features was asked for.
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  void learn(const Input& input, const Context& context) override;
  /// Layer `first` of its stack and those behind it (`BitSteps::first_float_layer`).
  const Tensor& forward_from(std::int64_t first, const Input& input, const Context& context);

  /// What it is made of, to be run one after the other.
  Sequential& stack() noexcept { return stack_; }

  /// From the next pass on, what goes into the last layer is kept. Throws `unsupported` for a model
  /// of one layer.
  void keep_embeddings(bool keeps = true);
  /// What went into the last layer in the last forward pass; kept where that was asked for.
  const Tensor& embeddings();

  /// The last forward pass as products of codes.
  BitSteps bit_steps();

  std::int64_t num_graphs() const override { return stack_.num_graphs(); }
  std::int64_t input_width() const override { return stack_.input_width(); }
  std::int64_t output_width() const override { return stack_.output_width(); }
  std::string describe() const override { return stack_.describe(); }
  bool accepts_sparse() const override { return stack_.accepts_sparse(); }

 private:
  step::Value build(const StepInputs& in) override { return stack_.append(in); }
  void require_layers() const;
  void require_edges(const Topology& graph) const;
  Input taken(const Input& input, const Context& context);

  ModelConfig config_;
  InputDropout input_dropout_;
  Sequential stack_;
  Input input_;
  StepRunner* last_run_ = nullptr;
  std::unique_ptr<StepRunner> rest_;  ///< of the layers from `first_of_rest_` on
  std::int64_t first_of_rest_ = -1;
};

}  // namespace tessera::nn
