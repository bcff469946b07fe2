// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/epilogue.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/nn/bit_steps.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"

#include "tessera/detail/ops/held_calls.hpp"

namespace tessera::nn {

Epilogue::Epilogue(const EpilogueOptions& options, std::int64_t width, Placement placement,
                   Initial bias_initial, std::string bias_name)
    : options_(options), y_(placement) {
  if (options.bias) bias.emplace(std::move(bias_name), 1, width, bias_initial, placement);
}

bool Epilogue::is_linear(const Context& context) const {
  return options_.activation == ops::Activation::none &&
         (options_.dropout == 0 || !context.training);
}

bool Epilogue::is_relu(const Context& context) const {
  return options_.activation == ops::Activation::relu &&
         (options_.dropout == 0 || !context.training);
}

const Parameter* Epilogue::take_result(const Tensor& y) {
  x_ = &y;
  x_is_result_ = true;
  return adds_bias() ? &*bias : nullptr;
}

Parameter* Epilogue::leave_bias() {
  if (!bias || options_.activation != ops::Activation::none || options_.dropout > 0) return nullptr;
  bias_is_left_ = true;
  return &*bias;
}

Parameter* Epilogue::only_bias(const Context& context) {
  return is_linear(context) && adds_bias() ? &*bias : nullptr;
}

Parameter* Epilogue::leave_sum(const Context& context) {
  Parameter* const left = only_bias(context);
  sum_is_left_ = left != nullptr;
  return left;
}

void Epilogue::let_finish(ops::LinearSurroundings& around, const Context& context) {
  if (!is_relu(context)) return;
  around.before_relu = true;
  if (adds_bias()) around.grad_x_sums = bias->gradient;
  is_finished_ = true;
}

ops::ConstOperand Epilogue::bias_value() const {
  return adds_bias() ? ops::ConstOperand(bias->used()) : ops::ConstOperand();
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
  if (is_linear(context) && !adds_bias()) return x;
  ops::release_calls(context.workspace);
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
  if (adds_bias()) {
    ops::release_calls(context.workspace);
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
  if (is_linear(context) && !adds_bias()) return {};
  ops::SpmmEpilogue epilogue;
  epilogue.bias = adds_bias();
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
  take_result(y);
}

std::optional<ops::ActivationOptions> Epilogue::as_last_pass(std::uint32_t layer_number,
                                                             const Context& context) const {
  if (adds_bias()) return {};
  return pass_options(layer_number, context);
}

void Epilogue::append_to(BitSteps& steps) const {
  if (adds_bias()) steps.add(bias->value);
  steps.activate(options_.activation);
}

void Epilogue::backward(Tensor& grad, std::uint32_t layer_number, const Context& context) {
  if (std::exchange(is_finished_, false) || std::exchange(sum_is_left_, false)) return;
  const bool linear = is_linear(context);
  if (linear && !adds_bias()) return;
  ops::release_calls(context.workspace);
  ops::Operand grad_bias;
  if (adds_bias()) grad_bias = bias->gradient;
  ops::Operand grad_x;
  if (!linear) grad_x = grad;
  // Where there is nothing but the bias, x plays no part: any matrix of its shape will do.
  // A result has the sign of what it came from, and 0 where dropout took it.
  ops::bias_activation_dropout_backward(
      linear ? grad : *x_, x_is_result_ ? ops::ConstOperand() : bias_value(),
      pass_options(layer_number, context), grad, grad_x, grad_bias, grad.device(), context.stream,
      context.workspace);
}

void Epilogue::backward(const ops::GradientFactors& factors, Tensor& grad,
                        std::uint32_t layer_number, const Context& context) {
  ops::release_calls(context.workspace);
  grad.resize(factors.left.rows, factors.right.cols);
  if (is_linear(context)) {
    ops::gemm(ops::Transpose::no, ops::Transpose::no, 1, factors.left, factors.right, 0, grad,
              grad.device(), context.stream, context.workspace);
    return backward(grad, layer_number, context);
  }
  ops::Operand grad_bias;
  if (adds_bias()) grad_bias = bias->gradient;
  ops::bias_activation_dropout_backward(*x_, x_is_result_ ? ops::ConstOperand() : bias_value(),
                                        pass_options(layer_number, context), {}, grad, grad_bias,
                                        grad.device(), context.stream, context.workspace, factors);
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
