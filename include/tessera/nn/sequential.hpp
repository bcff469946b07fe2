// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

/// Layers one after the other. Of a list of graphs, each takes as many as it needs, in order.
class Sequential : public Layer {
 public:
  explicit Sequential(Placement placement = {}) : Layer(placement) {}

  /// `name` is the prefix of its parameters. Widths must fit; an error names both.
  Layer& add(std::string name, std::unique_ptr<Layer> layer);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(layers_.size()); }
  Layer& layer(std::int64_t i) { return *layers_[static_cast<std::size_t>(i)]; }
  /// What layer `i` put out in the last forward pass.
  const Tensor& output(std::int64_t i) const { return *outputs_[static_cast<std::size_t>(i)]; }

  const Tensor& forward(const Input& input, const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  std::int64_t num_graphs() const override;
  std::int64_t input_width() const override;
  std::int64_t output_width() const override;
  std::string describe() const override;
  bool accepts_sparse() const override;
  void set_needs_input_gradient(bool needs) override;
  bool append_to(BitSteps& steps) const override;
  Parameter* leave_sum(const Context& context) override {
    return layers_.empty() ? nullptr : layers_.back()->leave_sum(context);
  }
  /// The layers from `first` on; what they do not need of `context.graphs` has been left out.
  const Tensor& forward_from(std::int64_t first, const Input& input, const Context& context);

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<const Tensor*> outputs_;
};

/// y = f(x) + x.
class Residual final : public Layer {
 public:
  Residual(std::unique_ptr<Layer> inner, Placement placement = {});

  const Tensor& forward(const Input& input, const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  std::int64_t num_graphs() const override { return inner_->num_graphs(); }
  std::int64_t input_width() const override { return inner_->input_width(); }
  std::int64_t output_width() const override { return inner_->output_width(); }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  std::unique_ptr<Layer> inner_;
  Tensor output_;
  Tensor grad_;
};

}  // namespace tessera::nn
