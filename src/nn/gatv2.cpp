// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"
#include "tessera/nn/gat.hpp"
#include "tessera/ops/elementwise.hpp"

#include "nn/describe_gat.hpp"

namespace tessera::nn {
namespace {

EpilogueOptions bias_alone(const GatOptions& options) {
  EpilogueOptions bias;
  bias.bias = options.output.bias;
  return bias;
}

}  // namespace

Gatv2::Gatv2(const GatOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      att_("att", 1, options.attended_width(), Initial::glorot(options.heads, options.out),
           placement),
      lin_source_("lin_l.weight", options.in, options.attended_width(),
                  Initial::glorot(options.in, options.attended_width()), placement),
      bias_source_(bias_alone(options), options.attended_width(), placement,
                   Initial::linear(options.in), "lin_l.bias"),
      attention_("GATv2", ops::AttentionForm::gatv2, options, placement),
      source_value_(placement),
      target_value_(placement),
      grad_value_(placement),
      grad_source_value_(placement),
      grad_target_value_(placement),
      grad_sources_(placement),
      grad_targets_(placement) {
  register_parameter(att_);
  if (attention_.epilogue.bias) register_parameter(*attention_.epilogue.bias);
  register_parameter(lin_source_.weight);
  if (bias_source_.bias) register_parameter(*bias_source_.bias);
  if (!options.share_weights) {
    lin_target_.emplace("lin_r.weight", options.target_width(), options.attended_width(),
                        Initial::glorot(options.target_width(), options.attended_width()),
                        placement);
    bias_target_.emplace(bias_alone(options), options.attended_width(), placement,
                         Initial::linear(options.target_width()), "lin_r.bias");
    register_parameter(lin_target_->weight);
    if (bias_target_->bias) register_parameter(*bias_target_->bias);
  }
  if (attention_.residual) register_parameter(attention_.residual->weight);
}

ops::AttentionInputs Gatv2::attention_inputs() const {
  ops::AttentionInputs inputs;
  inputs.target = one_value() ? source_value_ : target_value_;
  inputs.source = source_value_;
  inputs.value = source_value_;
  inputs.vector = att_.used();
  return inputs;
}

const Tensor& Gatv2::forward_pair(const Input& sources, const Input& targets,
                                  const Context& context) {
  if (targets.absent()) {
    throw Error(ErrorCode::invalid_argument, "the targets have no features", "GATv2",
                "give it features of both sides");
  }
  sources_ = sources;
  targets_ = targets;
  lin_source_.forward(sources, 0, source_value_, context);
  bias_source_.forward_in_place(source_value_, number(), context);
  if (!one_value()) {
    (lin_target_ ? *lin_target_ : lin_source_).forward(targets, 0, target_value_, context);
    (bias_target_ ? *bias_target_ : bias_source_)
        .forward_in_place(target_value_, number(), context);
  }
  return attention_.forward(attention_inputs(), targets, number(), context);
}

Tensor* Gatv2::backward_pair(Tensor& grad_output, const Context& context) {
  grad_value_.resize(source_value_.rows(), source_value_.cols());
  grad_source_value_.resize(source_value_.rows(), source_value_.cols());
  const Tensor& target_value = one_value() ? source_value_ : target_value_;
  grad_target_value_.resize(target_value.rows(), target_value.cols());
  ops::AttentionGradOutputs gradients;
  gradients.target = grad_target_value_;
  gradients.source = grad_source_value_;
  gradients.value = grad_value_;
  gradients.vector = att_.gradient;
  attention_.backward(attention_inputs(), targets_, grad_output, gradients, number(), context);
  ops::add_scaled(1, grad_value_, 1, grad_source_value_, device(), context.stream);
  if (one_value()) {
    ops::add_scaled(1, grad_target_value_, 1, grad_source_value_, device(), context.stream);
  }
  backward_weights(context);
  if (!needs_input_gradient()) return nullptr;
  if (!sources_.is_sparse()) {
    lin_source_.backward_input(grad_source_value_, 0, grad_sources_, context);
  }
  if (!targets_.is_sparse()) {
    const bool same = sources_ == targets_;
    Tensor& grad = same ? grad_sources_ : grad_targets_;
    if (!one_value()) {
      (lin_target_ ? *lin_target_ : lin_source_)
          .backward_input(grad_target_value_, same ? 1 : 0, grad, context);
    }
    attention_.backward_residual(grad_output, grad, context);
  }
  return sources_.is_sparse() ? nullptr : &grad_sources_;
}

void Gatv2::backward_weights(const Context& context) {
  bias_source_.backward(grad_source_value_, number(), context);
  lin_source_.backward_weight(sources_, grad_source_value_, context);
  if (one_value()) return;
  if (lin_target_) {
    bias_target_->backward(grad_target_value_, number(), context);
    lin_target_->backward_weight(targets_, grad_target_value_, context);
    return;
  }
  // Shared by two different inputs: the gradients of both add up.
  lin_source_.backward_weight(targets_, grad_target_value_, context, true);
  if (!bias_source_.bias) return;
  Tensor of_sources(placement());
  of_sources.copy_from(bias_source_.bias->gradient, context.stream);
  bias_source_.backward(grad_target_value_, number(), context);
  ops::add_scaled(1, of_sources, 1, bias_source_.bias->gradient, device(), context.stream);
}

Tensor* Gatv2::target_gradient() {
  const bool has_one = needs_input_gradient() && !targets_.is_sparse() && !(sources_ == targets_);
  return has_one ? &grad_targets_ : nullptr;
}

std::string Gatv2::describe() const { return describe_attention("GATv2", options_); }

}  // namespace tessera::nn
