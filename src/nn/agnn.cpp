// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/agnn.hpp"

#include <fmt/format.h>

#include "tessera/ops/activation.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::nn {

Agnn::Agnn(const AgnnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      beta_("beta", 1, 1, Initial::constant(1), placement),
      epilogue_(options.output, options.width, placement),
      unit_(placement),
      attended_(placement),
      log_sum_(placement),
      grad_unit_(placement),
      grad_source_(placement),
      grad_input_(placement) {
  beta_.trainable = options.requires_grad;
  register_parameter(beta_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

const ops::AttentionPlan& Agnn::plan(const Context& context) const {
  ops::AttentionOptions options;
  options.form = ops::AttentionForm::dot;
  options.precision = placement().precision;
  options.features = options_.width;
  return context.required_graph("AGNN").attention(
      options_.add_self_loops ? pattern_with_self_loops : pattern, options);
}

ops::AttentionInputs Agnn::attention_inputs() const {
  ops::AttentionInputs inputs;
  inputs.target = unit_;
  inputs.source = unit_;
  inputs.value = *input_;
  inputs.scale = beta_.value.item();
  return inputs;
}

const Tensor& Agnn::forward(const Input& input, const Context& context) {
  input_ = &input.dense("AGNN");
  unit_.resize(input_->rows(), input_->cols());
  attended_.resize(input_->rows(), input_->cols());
  log_sum_.resize(input_->rows(), 1);
  ops::row_normalise(*input_, unit_, 1e-12, device(), context.stream);
  ops::run(plan(context), attention_inputs(), {attended_, log_sum_}, context.stream);
  return epilogue_.forward(attended_, number(), context);
}

Tensor* Agnn::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  const bool to_input = needs_input_gradient();
  ops::AttentionGradOutputs gradients;
  double grad_beta = 0;
  if (beta_.trainable) gradients.scale = &grad_beta;
  if (to_input) {
    for (Tensor* tensor : {&grad_unit_, &grad_source_, &grad_input_}) {
      tensor->resize(input_->rows(), input_->cols());
    }
    gradients.target = grad_unit_;
    gradients.source = grad_source_;
    gradients.value = grad_input_;
  }
  ops::run_backward(plan(context), attention_inputs(), attended_, log_sum_, grad_output, gradients,
                    context.stream);
  if (beta_.trainable) beta_.gradient.fill(grad_beta, context.stream);
  if (!to_input) return nullptr;
  ops::add_scaled(1, grad_source_, 1, grad_unit_, device(), context.stream);
  ops::row_normalise_backward(*input_, grad_unit_, grad_source_, 1e-12, device(), context.stream);
  ops::add_scaled(1, grad_source_, 1, grad_input_, device(), context.stream);
  return &grad_input_;
}

std::string Agnn::describe() const {
  return fmt::format("AGNN({}{}{})", options_.width, options_.requires_grad ? "" : ", fixed beta",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
