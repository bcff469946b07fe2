// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/agnn.hpp"

#include <fmt/format.h>

#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/unit_rows.hpp"

namespace tessera::nn {
namespace {

/// Rows below this length have no direction.
constexpr double shortest = 1e-12;

}  // namespace

Agnn::Agnn(const AgnnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      beta_("beta", 1, 1, Initial::constant(1), placement),
      epilogue_(options.output, options.width, placement),
      unit_(placement),
      scaled_(placement),
      attended_(placement),
      log_sum_(placement),
      grad_unit_(placement),
      grad_scaled_(placement),
      grad_input_(placement) {
  beta_.trainable = options.requires_grad;
  register_parameter(beta_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

ops::AttentionPlan Agnn::plan(const Context& context, bool backward) const {
  ops::AttentionOptions options;
  options.backward = backward;
  options.form = ops::AttentionForm::dot;
  options.precision = placement().precision;
  options.features = options_.width;
  return context.required_graph("AGNN").attention(
      options_.add_self_loops ? pattern_with_self_loops : pattern, options);
}

ops::AttentionInputs Agnn::attention_inputs() const {
  ops::AttentionInputs inputs;
  inputs.target = scaled_;
  inputs.source = unit_;
  inputs.value = *input_;
  return inputs;
}

// Beta stays on the device: the targets are multiplied by it before attention sees them.
const Tensor& Agnn::forward(const Input& input, const Context& context) {
  input_ = &input.dense("AGNN");
  for (Tensor* tensor : {&unit_, &scaled_, &attended_}) {
    tensor->resize(input_->rows(), input_->cols());
  }
  log_sum_.resize(input_->rows(), 1);
  ops::unit_rows(*input_, beta_.value, unit_, scaled_, shortest, device(), context.stream);
  ops::run(plan(context, context.training), attention_inputs(), {attended_, log_sum_},
           context.stream);
  return epilogue_.forward(attended_, number(), context);
}

Tensor* Agnn::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  const bool to_input = needs_input_gradient();
  if (!to_input && !beta_.trainable) return nullptr;
  ops::AttentionGradOutputs gradients;
  grad_scaled_.resize(input_->rows(), input_->cols());
  gradients.target = grad_scaled_;
  if (to_input) {
    for (Tensor* tensor : {&grad_unit_, &grad_input_}) {
      tensor->resize(input_->rows(), input_->cols());
    }
    gradients.source = grad_unit_;
    gradients.value = grad_input_;
  }
  ops::run_backward(plan(context, true), attention_inputs(), attended_, log_sum_, grad_output,
                    gradients, context.stream);
  if (beta_.trainable) {
    ops::dot(grad_scaled_, unit_, beta_.gradient, device(), context.stream, context.workspace);
  }
  if (!to_input) return nullptr;
  ops::unit_rows_backward(*input_, beta_.value, grad_unit_, grad_scaled_, grad_input_, shortest,
                          device(), context.stream);
  return &grad_input_;
}

std::string Agnn::describe() const {
  return fmt::format("AGNN({}{}{})", options_.width, options_.requires_grad ? "" : ", fixed beta",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
