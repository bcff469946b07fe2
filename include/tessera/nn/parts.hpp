// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/context.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/tensor.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/spmm.hpp"

/// What layers are made of.
namespace tessera::nn {

/// y = x W^T for a dense or a sparse x; W is out x in, as in PyTorch.
class Projection {
 public:
  Projection(std::string name, std::int64_t in, std::int64_t out, Initial initial,
             Placement placement);

  Parameter weight;

  std::int64_t in() const noexcept { return weight.value.cols(); }
  std::int64_t out() const noexcept { return weight.value.rows(); }

  /// y = x W^T + beta * y, beta 0 or 1. With beta = 0 `y` takes the shape it needs.
  void forward(const Input& x, double beta, Tensor& y, const Context& context);
  /// Writes the weight's gradient (adds to it with `accumulate`), for two uses of one weight.
  void backward_weight(const Input& x, const Tensor& grad_y, const Context& context,
                       bool accumulate = false);
  /// grad_x = grad_y W + beta * grad_x.
  void backward_input(const Tensor& grad_y, double beta, Tensor& grad_x, const Context& context);

 private:
  Tensor turned_;   ///< W^T, or its gradient, for sparse x
  Tensor product_;  ///< for a sparse x with beta = 1
};

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
  /// Turns the gradient of y into that of x, in place, and writes the bias's.
  void backward(Tensor& grad, std::uint32_t layer_number, const Context& context);

 private:
  bool is_linear(const Context& context) const;
  ops::ConstOperand bias_value() const;
  ops::ActivationOptions pass_options(std::uint32_t layer_number, const Context& context) const;

  EpilogueOptions options_;
  const Tensor* x_ = nullptr;
  bool x_is_result_ = false;  ///< x_ is y: its signs tell the derivative
  Tensor y_;
};

/// ", relu, dropout 0.5", or nothing: the end of a layer's description.
std::string describe(const EpilogueOptions& options);

}  // namespace tessera::nn
