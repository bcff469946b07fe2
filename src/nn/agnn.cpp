// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/agnn.hpp"

#include <fmt/format.h>

namespace tessera::nn {

Agnn::Agnn(const AgnnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      beta_("beta", 1, 1, Initial::constant(1), placement),
      epilogue_(options.output, options.width, placement),
      attended_(placement),
      log_sum_(placement.wide()),
      inverse_lengths_(placement.wide()),
      grad_input_(placement) {
  beta_.trainable = options.requires_grad;
  register_parameter(beta_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

ops::AttentionPlan Agnn::plan(const Context& context, bool backward) const {
  ops::AttentionOptions options;
  options.backward = backward;
  options.form = ops::AttentionForm::cosine;
  options.precision = placement().precision;
  options.features = options_.width;
  return context.required_graph("AGNN").attention(
      options_.add_self_loops ? pattern_with_self_loops : pattern, options);
}

ops::AttentionInputs Agnn::attention_inputs() const {
  ops::AttentionInputs inputs;
  inputs.value = *input_;
  inputs.vector = beta_.used();
  return inputs;
}

const Tensor& Agnn::forward(const Input& input, const Context& context) {
  input_ = &input.dense("AGNN");
  attended_.resize(input_->rows(), input_->cols());
  log_sum_.resize(input_->rows(), 1);
  inverse_lengths_.resize(1, input_->rows());
  ops::run(plan(context, context.training), attention_inputs(),
           {attended_, log_sum_, inverse_lengths_}, context.stream);
  return epilogue_.forward(attended_, number(), context);
}

Tensor* Agnn::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  const bool to_input = needs_input_gradient();
  if (!to_input && !beta_.trainable) return nullptr;
  ops::AttentionGradOutputs gradients;
  if (beta_.trainable) gradients.vector = beta_.gradient;
  if (to_input) {
    grad_input_.resize(input_->rows(), input_->cols());
    gradients.value = grad_input_;
  }
  ops::AttentionInputs inputs = attention_inputs();
  inputs.inverse_lengths = inverse_lengths_;
  ops::run_backward(plan(context, true), inputs, attended_, log_sum_, grad_output, gradients,
                    context.stream);
  return to_input ? &grad_input_ : nullptr;
}

std::string Agnn::describe() const {
  return fmt::format("AGNN({}{}{})", options_.width, options_.requires_grad ? "" : ", fixed beta",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
