// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/norm.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/bit_steps.hpp"

namespace tessera::nn {

BatchNorm::BatchNorm(const BatchNormLayerOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      weight_("weight", 1, options.width, Initial::constant(1), placement.wide()),
      bias_("bias", 1, options.width, Initial::constant(0), placement.wide()),
      running_mean_(1, options.width, placement.wide()),
      running_variance_(1, options.width, placement.wide()),
      epilogue_(options.output, options.width, placement),
      normalised_(placement),
      columns_(options.width, 4, placement.wide()),
      grad_columns_(options.width, 8, placement.wide()),
      sums_(options.width, placement),
      mean_(1, options.width, placement.wide()),
      inverse_deviation_(1, options.width, placement.wide()),
      grad_input_(placement) {
  running_mean_.fill(0);
  running_variance_.fill(1);
  register_parameter(weight_);
  register_parameter(bias_);
  register_buffer("running_mean", running_mean_);
  register_buffer("running_var", running_variance_);
}

const Tensor& BatchNorm::forward(const Input& input, const Context& context) {
  input_ = input;
  const Tensor& x = input.dense("BatchNorm");
  normalised_.resize(x.rows(), x.cols());
  const auto activation = epilogue_.as_last_pass(number(), context);
  run(x, normalised_, {}, activation.value_or(ops::ActivationOptions{}), context);
  return activation ? normalised_ : epilogue_.forward_in_place(normalised_, number(), context);
}

void BatchNorm::run(const Tensor& x, ops::Operand y, ops::Operand columns,
                    const ops::ActivationOptions& activation, const Context& context) {
  ops::BatchNormNeighbours neighbours;
  if (moments_ != nullptr && moments_->known && context.training) {
    neighbours.moments = moments_->values;
  }
  neighbours.columns = columns;
  ops::batch_norm(
      x, weight_.value, bias_.value, {options_.epsilon, options_.momentum, context.training},
      {running_mean_, running_variance_}, y, mean_, inverse_deviation_, device(), context.stream,
      context.workspace, activation,
      input_bias_ != nullptr ? ops::ConstOperand(input_bias_->used()) : ops::ConstOperand(),
      neighbours);
}

bool BatchNorm::leaves_rows(const Context& context) const {
  const auto activation = epilogue_.as_last_pass(number(), context);
  if (!activation || activation->dropout > 0) return false;
  return activation->activation == ops::Activation::none ||
         activation->activation == ops::Activation::relu;
}

ops::LinearSurroundings BatchNorm::forward_columns(const Tensor& x, const Context& context) {
  input_ = Input(x);
  run(x, {}, columns_, {}, context);
  ops::LinearSurroundings around;
  around.columns = std::as_const(columns_);
  around.relu = options_.output.activation == ops::Activation::relu;
  return around;
}

ops::NormedGradient BatchNorm::backward_columns(ops::ConstOperand grad_output,
                                                const ops::GradientFactors& factors,
                                                const Context& context) {
  run_backward(grad_output, factors, {}, grad_columns_, context);
  ops::NormedGradient normed;
  normed.y = input_.dense("BatchNorm");
  normed.columns = std::as_const(grad_columns_);
  normed.relu = options_.output.activation == ops::Activation::relu;
  normed.factors = factors;
  return normed;
}

ops::Operand BatchNorm::expect_sums() {
  sums_.known = true;
  ops::Operand sums = sums_.values;
  sums.rows = 2;
  return sums;
}

Tensor* BatchNorm::backward(Tensor& grad_output, const Context& context) {
  if (before_ != nullptr && leaves_rows(context) && before_->takes_normed(context)) {
    before_->take_normed(backward_columns(std::as_const(grad_output), {}, context));
    return &grad_output;
  }
  if (!epilogue_.as_last_pass(number(), context)) {
    epilogue_.backward(grad_output, number(), context);
  }
  return backward(std::as_const(grad_output), {}, context);
}

Tensor* BatchNorm::backward_product(const GradientProduct& grad_output, const Context& context) {
  if (epilogue_.as_last_pass(number(), context)) {
    return backward({}, grad_output.factors(), context);
  }
  epilogue_.backward(grad_output.factors(), grad_input_, number(), context);
  return backward(std::as_const(grad_input_), {}, context);
}

Tensor* BatchNorm::backward(ops::ConstOperand grad_output, const ops::GradientFactors& factors,
                            const Context& context) {
  const Tensor& x = input_.dense("BatchNorm");
  grad_input_.resize(x.rows(), x.cols());
  run_backward(grad_output, factors, grad_input_, {}, context);
  return &grad_input_;
}

void BatchNorm::run_backward(ops::ConstOperand grad_output, const ops::GradientFactors& factors,
                             ops::Operand grad_input, ops::Operand grad_columns,
                             const Context& context) {
  if (!context.training) {
    throw Error(ErrorCode::unsupported, "batch norm has a gradient in training only", "BatchNorm",
                "set Context::training");
  }
  ops::BatchNormSurroundings around;
  around.factors = factors;
  if (const auto activation = epilogue_.as_last_pass(number(), context)) {
    around.activation = *activation;
    around.beta = std::as_const(bias_.value);
  }
  if (input_bias_ != nullptr) around.grad_shift = input_bias_->gradient;
  around.grad_columns = grad_columns;
  if (std::exchange(sums_.known, false)) {
    around.sums = std::as_const(sums_.values);
    around.sums.rows = 2;
  }
  ops::batch_norm_backward(input_.dense("BatchNorm"), weight_.value, mean_, inverse_deviation_,
                           grad_output, grad_input, weight_.gradient, bias_.gradient, device(),
                           context.stream, context.workspace, around);
}

bool BatchNorm::append_to(BitSteps& steps) const {
  if (input_bias_ != nullptr) steps.add(input_bias_->value);
  std::vector<float> scale, shift;
  for (std::int64_t j = 0; j < options_.width; ++j) {
    const double deviation =
        std::sqrt(static_cast<double>(running_variance_.as<float>()(0, j)) + options_.epsilon);
    const double factor = static_cast<double>(weight_.value.as<float>()(0, j)) / deviation;
    scale.push_back(static_cast<float>(factor));
    shift.push_back(static_cast<float>(static_cast<double>(bias_.value.as<float>()(0, j)) -
                                       running_mean_.as<float>()(0, j) * factor));
  }
  steps.normalise(std::move(scale), std::move(shift));
  epilogue_.append_to(steps);
  return true;
}

std::string BatchNorm::describe() const {
  return fmt::format("BatchNorm({}{})", options_.width, nn::describe(options_.output));
}

ActivationLayer::ActivationLayer(const ActivationLayerOptions& options, Placement placement)
    : Layer(placement), options_(options), epilogue_(options.output, options.width, placement) {
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

const Tensor& ActivationLayer::forward(const Input& input, const Context& context) {
  return epilogue_.forward(input.dense("Activation"), number(), context);
}

Tensor* ActivationLayer::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  return &grad_output;
}

std::string ActivationLayer::describe() const {
  return fmt::format("Activation({}{})", options_.width, nn::describe(options_.output));
}

}  // namespace tessera::nn
