// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/names.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::nn {

class BitSteps;

struct EpilogueOptions {
  bool bias = true;
  ops::Activation activation = ops::Activation::none;
  double slope = 0.01;  ///< leaky_relu
  double alpha = 1;     ///< elu
  double dropout = 0;
};

/// What follows a layer's sums: y = drop(activate(x + bias)), in one pass.
class Epilogue {
 public:
  Epilogue(const EpilogueOptions& options, std::int64_t width, Placement placement,
           Initial bias_initial = {}, std::string bias_name = "bias");

  std::optional<Parameter> bias;  ///< 1 x width
  const EpilogueOptions& options() const noexcept { return options_; }

  /// Whether nothing but a bias is left to add.
  bool is_linear(const Context& context) const;
  /// Whether ReLU is all that follows a bias.
  bool is_relu(const Context& context) const;
  /// The matrix before it comes out as what the epilogue makes of it (`y`): nothing but `backward`
  /// is called. The bias that is added, if any.
  const Parameter* take_result(const Tensor& y);
  /// As `Layer::leave_bias`: where nothing else follows.
  Parameter* leave_bias();
  /// The bias if adding it is all that there is to do; what does that itself, and its gradient,
  /// need call neither `forward` nor `backward`.
  Parameter* only_bias(const Context& context);

  /// As `Layer::leave_sum`: where nothing but the bias is left to add.
  Parameter* leave_sum(const Context& context);
  bool sum_is_left() const noexcept { return sum_is_left_; }
  /// For a dense layer that follows directly (`Layer::last_epilogue`) and is about to write the
  /// gradient of the result: adds to `around` what turns it into that of x, where that is ReLU
  /// alone. The next backward then finds nothing to do.
  void let_finish(ops::LinearSurroundings& around, const Context& context);

  /// Returns where the result is: `x` itself if there is nothing to do. `x` must live until
  /// backward.
  const Tensor& forward(const Tensor& x, std::uint32_t layer_number, const Context& context);
  /// The same, overwriting `x` where the result can take its place.
  const Tensor& forward_in_place(Tensor& x, std::uint32_t layer_number, const Context& context);
  /// The same as part of a product with a graph, if the product's kernel can do it and backward can
  /// do with y alone: everything but the derivative of elu, which is only known before dropout.
  std::optional<ops::SpmmEpilogue> in_product(const Context& context) const;
  /// What such a product needs of it. `y` will be the product's result, which must live until
  /// backward.
  void give_to_product(ops::SpmmInputs& inputs, const Tensor& y, std::uint32_t layer_number,
                       const Context& context);
  /// The same for what computes all of it in one pass, and its gradient, too: absent where this one
  /// has a bias.
  std::optional<ops::ActivationOptions> as_last_pass(std::uint32_t layer_number,
                                                     const Context& context) const;
  /// Adds what it does outside training to the last of the steps.
  void append_to(BitSteps& steps) const;
  /// Turns the gradient of y into that of x, in place, and writes the bias's.
  void backward(Tensor& grad, std::uint32_t layer_number, const Context& context);
  /// The same of a gradient that comes as factors, into `grad`.
  void backward(const ops::GradientFactors& factors, Tensor& grad, std::uint32_t layer_number,
                const Context& context);

 private:
  bool adds_bias() const noexcept { return bias && !bias_is_left_; }
  ops::ConstOperand bias_value() const;
  ops::ActivationOptions pass_options(std::uint32_t layer_number, const Context& context) const;

  EpilogueOptions options_;
  const Tensor* x_ = nullptr;
  bool bias_is_left_ = false;
  bool x_is_result_ = false;  ///< x_ is y: its signs tell the derivative
  bool sum_is_left_ = false;  ///< of the gradient, to somebody else; for one pass
  bool is_finished_ = false;  ///< the layer that follows did what there is to do; for one pass
  Tensor y_;
};

/// ", relu, dropout 0.5", or nothing: the end of a layer's description.
std::string describe(const EpilogueOptions& options);

}  // namespace tessera::nn
