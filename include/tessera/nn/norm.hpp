// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::nn {

struct BatchNormLayerOptions {
  std::int64_t width = 0;
  double epsilon = 1e-5;
  double momentum = 0.1;
  EpilogueOptions output = {.bias = false};
};

/// Batch norm over the vertices, then activation and dropout. PyTorch's BatchNorm1d: `weight`,
/// `bias`, and in the state `running_mean`, `running_var`. Its gradient is that of training.
class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const BatchNormLayerOptions& options, Placement placement = {});

  const Tensor& forward(const Input& input, const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  bool takes_product() const override { return true; }
  Tensor* backward_product(const GradientProduct& grad_output, const Context& context) override;
  /// Adds what the layer before left (`leave_bias`) to its input, without a pass of its own, and
  /// writes its gradient. nullptr: nothing.
  void take_bias(Parameter* bias) { input_bias_ = bias; }
  /// Those of its input, where whoever wrote it left them (`leave_moments`). nullptr: never.
  void take_moments(const ColumnMoments* moments) { moments_ = moments; }
  /// Leaves the gradient of its input to the layer before wherever that takes it (`takes_normed`).
  void leave_gradient_to(Layer& before) { before_ = &before; }

  /// Whether normalising and what follows can be left to a layer that reads the rows: nothing
  /// follows, or ReLU.
  bool leaves_rows(const Context& context) const;
  /// As `forward`, except that what is normalised is not written: the next reads `x` with this.
  ops::LinearSurroundings forward_columns(const Tensor& x, const Context& context);
  /// As backward where `leaves_rows`, except that the gradient of its input is not written: who
  /// reads `grad_output`, or the factors in its place, makes it of that.
  ops::NormedGradient backward_columns(ops::ConstOperand grad_output,
                                       const ops::GradientFactors& factors, const Context& context);
  /// Where the layer that reads what is normalised leaves sums for the next backward pass, which
  /// relies on them.
  ops::Operand expect_sums();
  bool append_to(BitSteps& steps) const override;
  bool lets_calls_wait() const override { return true; }
  std::int64_t input_width() const override { return options_.width; }
  std::int64_t output_width() const override { return options_.width; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  Tensor* backward(ops::ConstOperand grad_output, const ops::GradientFactors& factors,
                   const Context& context);
  void run(const Tensor& x, ops::Operand y, ops::Operand columns,
           const ops::ActivationOptions& activation, const Context& context);
  void run_backward(ops::ConstOperand grad_output, const ops::GradientFactors& factors,
                    ops::Operand grad_input, ops::Operand grad_columns, const Context& context);

  BatchNormLayerOptions options_;
  Parameter weight_;
  Parameter bias_;
  Parameter* input_bias_ = nullptr;
  const ColumnMoments* moments_ = nullptr;
  Tensor running_mean_;
  Tensor running_variance_;
  Epilogue epilogue_;
  Input input_;
  Tensor normalised_;
  Tensor columns_;
  Tensor grad_columns_;
  ColumnMoments sums_;  ///< of the gradient
  Layer* before_ = nullptr;
  Tensor mean_;
  Tensor inverse_deviation_;
  Tensor grad_input_;
};

struct ActivationLayerOptions {
  std::int64_t width = 0;
  EpilogueOptions output = {.bias = false};
};

/// Activation and dropout alone.
class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(const ActivationLayerOptions& options, Placement placement = {});

  const Tensor& forward(const Input& input, const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  std::int64_t input_width() const override { return options_.width; }
  std::int64_t output_width() const override { return options_.width; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  ActivationLayerOptions options_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
