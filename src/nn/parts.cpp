// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/parts.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"

namespace tessera::nn {
namespace {

using ops::Transpose;

ops::SpmmOptions product_options(const Parameter& weight, bool backward) {
  ops::SpmmOptions options;
  options.precision = weight.value.precision();
  options.features = weight.value.rows();
  options.edge_value_gradient = false;
  options.backward = backward;
  return options;
}

void require_width(const Input& x, const Parameter& weight) {
  if (x.cols() == weight.value.cols()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the input has {} features, but the weight is {} x {}", x.cols(),
                          weight.value.rows(), weight.value.cols()),
              weight.name, fmt::format("give it {} features", weight.value.cols()));
}

}  // namespace

Projection::Projection(std::string name, std::int64_t in, std::int64_t out, Initial initial,
                       Placement placement)
    : weight(std::move(name), out, in, initial, placement),
      turned_(placement),
      product_(placement) {}

void Projection::forward(const Input& x, double beta, Tensor& y, const Context& context) {
  require_width(x, weight);
  const Device device = y.device();
  if (beta == 0) y.resize(x.rows(), out());
  if (!x.is_sparse()) {
    ops::gemm(Transpose::no, Transpose::yes, 1, x.dense("Projection"), weight.value, beta, y,
              device, context.stream, context.workspace);
    return;
  }
  turned_.resize(in(), out());
  ops::transpose(weight.value, turned_, device, context.stream);
  if (beta != 0) product_.resize(x.rows(), out());
  Tensor& target = beta == 0 ? y : product_;
  ops::run(x.sparse().spmm(as_given, product_options(weight, context.training)),
           {turned_, x.values()}, {target}, context.stream);
  if (beta != 0) ops::add_scaled(1, product_, beta, y, device, context.stream);
}

void Projection::backward_weight(const Input& x, const Tensor& grad_y, const Context& context,
                                 bool accumulate) {
  const Device device = grad_y.device();
  if (!x.is_sparse()) {
    ops::gemm(Transpose::yes, Transpose::no, 1, grad_y, x.dense("Projection"), accumulate ? 1 : 0,
              weight.gradient, device, context.stream, context.workspace);
    return;
  }
  turned_.resize(in(), out());
  ops::run_backward(x.sparse().spmm(as_given, product_options(weight, true)),
                    {grad_y, {}, x.values(), {}}, {turned_, {}}, context.stream);
  if (accumulate) product_.resize(out(), in());
  Tensor& target = accumulate ? product_ : weight.gradient;
  ops::transpose(turned_, target, device, context.stream);
  if (accumulate) ops::add_scaled(1, product_, 1, weight.gradient, device, context.stream);
}

void Projection::backward_input(const Tensor& grad_y, double beta, Tensor& grad_x,
                                const Context& context) {
  if (beta == 0) grad_x.resize(grad_y.rows(), in());
  ops::gemm(Transpose::no, Transpose::no, 1, grad_y, weight.value, beta, grad_x, grad_x.device(),
            context.stream, context.workspace);
}

Epilogue::Epilogue(const EpilogueOptions& options, std::int64_t width, Placement placement,
                   Initial bias_initial, std::string bias_name)
    : options_(options), y_(placement) {
  if (options.bias) bias.emplace(std::move(bias_name), 1, width, bias_initial, placement);
}

bool Epilogue::is_linear(const Context& context) const {
  return options_.activation == ops::Activation::none &&
         (options_.dropout == 0 || !context.training);
}

ops::ConstOperand Epilogue::bias_value() const {
  return bias ? ops::ConstOperand(std::as_const(bias->value)) : ops::ConstOperand();
}

ops::ActivationOptions Epilogue::pass_options(std::uint32_t layer_number,
                                              const Context& context) const {
  ops::ActivationOptions options;
  options.activation = options_.activation;
  options.slope = options_.slope;
  options.alpha = options_.alpha;
  options.dropout = context.training ? options_.dropout : 0;
  options.random = context.random(layer_number);
  options.clock = context.clock;
  return options;
}

const Tensor& Epilogue::forward(const Tensor& x, std::uint32_t layer_number,
                                const Context& context) {
  x_ = &x;
  x_is_result_ = false;
  if (is_linear(context) && !bias) return x;
  y_.resize(x.rows(), x.cols());
  ops::bias_activation_dropout(x, bias_value(), pass_options(layer_number, context), y_,
                               y_.device(), context.stream);
  return y_;
}

const Tensor& Epilogue::forward_in_place(Tensor& x, std::uint32_t layer_number,
                                         const Context& context) {
  if (!is_linear(context)) return forward(x, layer_number, context);
  x_ = &x;
  x_is_result_ = false;
  if (bias) {
    ops::bias_activation_dropout(x, bias_value(), pass_options(layer_number, context), x,
                                 x.device(), context.stream);
  }
  return x;
}

std::optional<ops::SpmmEpilogue> Epilogue::in_product(const Context& context) const {
  const bool signs_tell =
      options_.activation != ops::Activation::elu &&
      (options_.activation != ops::Activation::leaky_relu || options_.slope > 0);
  if (context.training && !signs_tell) return {};
  if (is_linear(context) && !bias) return {};
  ops::SpmmEpilogue epilogue;
  epilogue.bias = bias.has_value();
  epilogue.activation = options_.activation;
  epilogue.slope = options_.slope;
  epilogue.alpha = options_.alpha;
  epilogue.dropout = context.training ? options_.dropout : 0;
  return epilogue;
}

void Epilogue::give_to_product(ops::SpmmInputs& inputs, const Tensor& y, std::uint32_t layer_number,
                               const Context& context) {
  inputs.bias = bias_value();
  inputs.random = context.random(layer_number);
  inputs.clock = context.clock;
  x_ = &y;
  x_is_result_ = true;
}

void Epilogue::backward(Tensor& grad, std::uint32_t layer_number, const Context& context) {
  const bool linear = is_linear(context);
  if (linear && !bias) return;
  ops::Operand grad_bias;
  if (bias) grad_bias = bias->gradient;
  ops::Operand grad_x;
  if (!linear) grad_x = grad;
  // Where there is nothing but the bias, x plays no part: any matrix of its shape will do.
  // A result has the sign of what it came from, and 0 where dropout took it.
  ops::bias_activation_dropout_backward(
      linear ? grad : *x_, x_is_result_ ? ops::ConstOperand() : bias_value(),
      pass_options(layer_number, context), grad, grad_x, grad_bias, grad.device(), context.stream,
      context.workspace);
}

std::string describe(const EpilogueOptions& options) {
  std::string text;
  if (options.activation != ops::Activation::none) {
    text += fmt::format(", {}", to_string(options.activation));
  }
  if (options.dropout > 0) text += fmt::format(", dropout {}", options.dropout);
  return text;
}

}  // namespace tessera::nn
