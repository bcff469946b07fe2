// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/nn/gat.hpp"
#include "tessera/ops/attention_kept.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/heads.hpp"

#include "nn/describe_gat.hpp"

namespace tessera::nn {

MultiHeadAttention::MultiHeadAttention(const char* layer, ops::AttentionForm form,
                                       const GatOptions& options, Placement placement)
    : epilogue(options.output, options.output_width(), placement),
      layer_(layer),
      form_(form),
      options_(options),
      attended_(placement),
      log_sum_(placement.wide()),
      kept_(placement.wide()),
      combined_(placement),
      grad_attended_(placement) {
  if (options.residual) {
    residual.emplace("res.weight", options.target_width(), options.output_width(),
                     Initial::glorot(options.target_width(), options.output_width()), placement);
  }
}

ops::AttentionPlan MultiHeadAttention::plan(const Context& context, bool backward) const {
  ops::AttentionOptions options;
  options.backward = backward;
  options.form = form_;
  options.precision = attended_.precision();
  options.heads = options_.heads;
  options.features = options_.attended_width();
  options.negative_slope = options_.negative_slope;
  options.dropout = context.training ? options_.dropout : 0;
  return context.required_graph(layer_).attention(
      options_.add_self_loops ? pattern_with_self_loops : pattern, options);
}

// The layer's own number belongs to the epilogue's dropout.
Random MultiHeadAttention::random(std::uint32_t number, const Context& context) {
  return context.random(number + 1);
}

const Tensor& MultiHeadAttention::forward(const ops::AttentionInputs& inputs, const Input& targets,
                                          std::uint32_t number, const Context& context) {
  const Device device = attended_.device();
  ops::AttentionInputs drawn = inputs;
  drawn.random = random(number, context);
  drawn.clock = context.clock;
  attended_.resize(inputs.target.rows, options_.attended_width());
  log_sum_.resize(inputs.target.rows, options_.heads);
  const ops::AttentionPlan planned = plan(context, context.training);
  // Nothing is kept outside of training: then there is no row, whatever the last pass kept.
  const std::int64_t numbers = ops::kept_numbers(planned);
  const bool keeps = numbers > 0;
  kept_.resize(keeps ? 1 : 0, numbers);
  ops::run_keeping(planned, drawn, {attended_, log_sum_},
                   keeps ? ops::Operand(kept_) : ops::Operand(), context.stream);
  // What attention put out must stay as it is: its gradient needs it.
  const bool adds = residual && !targets.absent();
  if (!averages() && !adds) return epilogue.forward(attended_, number, context);
  combined_.resize(attended_.rows(), options_.output_width());
  if (averages()) {
    ops::head_mean(attended_, combined_, device, context.stream);
  } else {
    ops::copy(attended_, combined_, device, context.stream);
  }
  if (adds) residual->forward(targets, 1, combined_, context);
  return epilogue.forward_in_place(combined_, number, context);
}

void MultiHeadAttention::backward(const ops::AttentionInputs& inputs, const Input& targets,
                                  Tensor& grad_output, const ops::AttentionGradOutputs& gradients,
                                  std::uint32_t number, const Context& context) {
  epilogue.backward(grad_output, number, context);
  if (residual) {
    if (targets.absent()) {
      residual->weight.gradient.fill(0, context.stream);
    } else {
      residual->backward_weight(targets, grad_output, context);
    }
  }
  if (averages()) {
    grad_attended_.resize(attended_.rows(), attended_.cols());
    ops::head_mean_backward(grad_output, grad_attended_, attended_.device(), context.stream);
  }
  ops::AttentionInputs drawn = inputs;
  drawn.random = random(number, context);
  drawn.clock = context.clock;
  const bool keeps = kept_.rows() > 0;
  ops::run_backward_kept(plan(context, true), drawn, attended_, log_sum_,
                         keeps ? ops::ConstOperand(kept_) : ops::ConstOperand(),
                         averages() ? grad_attended_ : grad_output, gradients, context.stream);
}

void MultiHeadAttention::backward_residual(const Tensor& grad_output, Tensor& grad_targets,
                                           const Context& context) {
  if (residual) residual->backward_input(grad_output, 1, grad_targets, context);
}

std::string describe_attention(const char* name, const GatOptions& options) {
  std::string text = fmt::format("{}({}, {} {} x {}", name, options.in, options.heads,
                                 options.heads == 1 ? "head" : "heads", options.out);
  if (!options.concat && options.heads > 1) text += " averaged";
  if (options.dropout > 0) text += fmt::format(", attention dropout {}", options.dropout);
  if (options.residual) text += ", residual";
  return text + describe(options.output) + ")";
}

}  // namespace tessera::nn
