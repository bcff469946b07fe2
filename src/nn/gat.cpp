// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gat.hpp"

#include <fmt/format.h>

#include "tessera/ops/heads.hpp"

#include "nn/describe_gat.hpp"

namespace tessera::nn {

Gat::Gat(const GatOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      att_source_("att_src", 1, options.attended_width(),
                  Initial::glorot(options.heads, options.out), placement),
      att_target_("att_dst", 1, options.attended_width(),
                  Initial::glorot(options.heads, options.out), placement),
      lin_(options.in_target == 0 ? "lin.weight" : "lin_src.weight", options.in,
           options.attended_width(), Initial::glorot(options.in, options.attended_width()),
           placement),
      attention_("GAT", ops::AttentionForm::gat, options, placement),
      value_(placement),
      target_value_(placement),
      score_source_(placement),
      score_target_(placement),
      grad_value_(placement),
      grad_target_value_(placement),
      grad_score_source_(placement),
      grad_score_target_(placement),
      grad_sources_(placement),
      grad_targets_(placement) {
  if (options.in_target != 0) {
    lin_target_.emplace("lin_dst.weight", options.in_target, options.attended_width(),
                        Initial::glorot(options.in_target, options.attended_width()), placement);
  }
  register_parameter(att_source_);
  register_parameter(att_target_);
  if (attention_.epilogue.bias) register_parameter(*attention_.epilogue.bias);
  register_parameter(lin_.weight);
  if (lin_target_) register_parameter(lin_target_->weight);
  if (attention_.residual) register_parameter(attention_.residual->weight);
}

ops::AttentionInputs Gat::attention_inputs() const {
  ops::AttentionInputs inputs;
  inputs.target = score_target_;
  inputs.source = score_source_;
  inputs.value = value_;
  return inputs;
}

const Tensor& Gat::forward_pair(const Input& sources, const Input& targets,
                                const Context& context) {
  sources_ = sources;
  targets_ = targets;
  lin_.forward(sources, 0, value_, context);
  score_source_.resize(value_.rows(), options_.heads);
  score_target_.resize(context.required_graph("GAT").graph().num_rows(), options_.heads);
  forward_scores(context);
  return attention_.forward(attention_inputs(), targets, number(), context);
}

// What attention sees of sources and targets.
void Gat::forward_scores(const Context& context) {
  if (!targets_.absent() && one_value()) {
    return ops::head_dots(value_, att_source_.used(), att_target_.used(), score_source_,
                          score_target_, device(), context.stream);
  }
  ops::head_dot(value_, att_source_.used(), score_source_, device(), context.stream);
  if (targets_.absent()) return score_target_.fill(0, context.stream);
  target_projection().forward(targets_, 0, target_value_, context);
  ops::head_dot(target_value_, att_target_.used(), score_target_, device(), context.stream);
}

Tensor* Gat::backward_pair(Tensor& grad_output, const Context& context) {
  grad_score_target_.resize(score_target_.rows(), options_.heads);
  grad_score_source_.resize(score_source_.rows(), options_.heads);
  grad_value_.resize(value_.rows(), value_.cols());
  ops::AttentionGradOutputs gradients;
  gradients.target = grad_score_target_;
  gradients.source = grad_score_source_;
  gradients.value = grad_value_;
  attention_.backward(attention_inputs(), targets_, grad_output, gradients, number(), context);
  backward_scores(context);
  const bool to_sources = needs_input_gradient() && !sources_.is_sparse();
  lin_.backward(sources_, grad_value_, nullptr, to_sources ? &grad_sources_ : nullptr, context);
  backward_targets(grad_output, context);
  return to_sources ? &grad_sources_ : nullptr;
}

// From the scores to the attention vectors and the products they were computed from.
void Gat::backward_scores(const Context& context) {
  if (!targets_.absent() && one_value()) {
    return ops::head_dots_backward(value_, att_source_.used(), att_target_.used(),
                                   grad_score_source_, grad_score_target_, grad_value_,
                                   att_source_.gradient, att_target_.gradient, device(),
                                   context.stream, context.workspace);
  }
  ops::head_dot_backward(value_, att_source_.used(), grad_score_source_, grad_value_,
                         att_source_.gradient, device(), context.stream, context.workspace);
  if (targets_.absent()) return att_target_.gradient.fill(0, context.stream);
  grad_target_value_.resize(target_value_.rows(), target_value_.cols());
  grad_target_value_.fill(0, context.stream);
  ops::head_dot_backward(target_value_, att_target_.used(), grad_score_target_, grad_target_value_,
                         att_target_.gradient, device(), context.stream, context.workspace);
}

// What the targets add to the gradients of weights and inputs.
void Gat::backward_targets(Tensor& grad_output, const Context& context) {
  if (targets_.absent()) {
    if (lin_target_) lin_target_->weight.gradient.fill(0, context.stream);
    return;
  }
  if (!one_value()) {
    target_projection().backward_weight(targets_, grad_target_value_, context, !lin_target_);
  }
  if (!needs_input_gradient() || targets_.is_sparse()) return;
  Tensor& grad = sources_ == targets_ ? grad_sources_ : grad_targets_;
  if (!one_value()) {
    target_projection().backward_input(grad_target_value_, sources_ == targets_ ? 1 : 0, grad,
                                       context);
  }
  attention_.backward_residual(grad_output, grad, context);
}

Tensor* Gat::target_gradient() {
  const bool has_one = needs_input_gradient() && !targets_.absent() && !targets_.is_sparse() &&
                       !(sources_ == targets_);
  return has_one ? &grad_targets_ : nullptr;
}

std::string Gat::describe() const { return describe_attention("GAT", options_); }

}  // namespace tessera::nn
