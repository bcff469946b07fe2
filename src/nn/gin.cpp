// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gin.hpp"

#include <utility>

#include <fmt/format.h>

#include "nn/finish_update.hpp"
#include "tessera/nn/bit_steps.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::nn {
namespace {

constexpr Propagation sum{"GIN", pattern};

std::int64_t hidden_width(const GinOptions& options) {
  return options.hidden == 0 ? options.out : options.hidden;
}

EpilogueOptions first_epilogue(const GinOptions& options) {
  EpilogueOptions first;
  if (!options.batch_norm) first.activation = ops::Activation::relu;
  return first;
}

BatchNormLayerOptions norm_options(const GinOptions& options) {
  BatchNormLayerOptions norm;
  norm.width = hidden_width(options);
  norm.output.activation = ops::Activation::relu;
  return norm;
}

}  // namespace

Gin::Gin(const GinOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      eps_("eps", 1, 1, Initial::constant(options.eps), placement),
      first_("nn.0.weight", options.in, hidden_width(options), Initial::linear(options.in),
             placement, options.bits),
      source_rounder_(options.bits, placement),
      target_rounder_(options.bits, placement),
      inner_rounder_(options.bits, placement),
      first_epilogue_(first_epilogue(options), hidden_width(options), placement,
                      Initial::linear(options.in), "nn.0.bias"),
      second_({hidden_width(options), options.out, options.output, options.bits}, placement),
      inner_(placement),
      inner_targets_(placement),
      combined_(placement),
      hidden_(placement),
      grad_inner_(placement),
      grad_inner_targets_(placement),
      grad_sources_(placement),
      grad_targets_(placement) {
  eps_.trainable = options.train_eps;
  register_parameter(eps_);
  register_parameter(first_.weight);
  register_parameter(*first_epilogue_.bias);
  if (options.batch_norm) {
    norm_.emplace(norm_options(options), placement);
    norm_->take_bias(first_epilogue_.leave_bias());
    norm_->take_moments(&moments_.emplace(hidden_width(options), placement));
    register_layer("nn.1", *norm_);
    second_.let_leave_product(true);
  }
  register_layer(options.batch_norm ? "nn.3" : "nn.2", second_);
  register_rounder("source", source_rounder_);
  register_rounder("target", target_rounder_);
  register_rounder("inner", inner_rounder_);
}

// Sums over neighbours go over the narrower side. Those of an input without a gradient are made
// once, on the way forward, where those of products are made on both ways.
bool Gin::transforms_first(const Input& sources, const Input& targets) const {
  if (sources.is_sparse() || targets.is_sparse()) return true;
  const bool is_summed_once = options_.bits == 0 && !needs_input_gradient() && !eps_.trainable;
  return hidden_width(options_) * (is_summed_once ? 2 : 1) < options_.in;
}

// What the sum runs over: the products X W^T, or X itself.
const Tensor& Gin::summed_sources() const {
  return transforms_first(sources_, targets_) ? inner_ : sources_.dense("GIN");
}

const Tensor& Gin::summed_targets() const {
  if (sources_ == targets_) return summed_sources();
  return transforms_first(sources_, targets_) ? inner_targets_ : targets_.dense("GIN");
}

const Tensor& Gin::forward_pair(const Input& sources, const Input& targets,
                                const Context& context) {
  const bool transforms = transforms_first(sources, targets);
  const auto rounded = [&](const Input& x, Rounder& rounder) {
    const bool stays = x.absent() || x.is_sparse() || (transforms && !options_.rounds_input);
    return stays ? x : Input(rounder(x.dense("GIN"), context));
  };
  sources_ = rounded(sources, source_rounder_);
  targets_ = sources == targets ? sources_ : rounded(targets, target_rounder_);
  if (moments_) moments_->known = false;
  const ops::AggregateUpdatePlan fused = fused_plan(context);
  const Tensor& first = fused.empty() ? forward_in_stages(context) : forward_fused(fused, context);
  if (!norm_) return second_.forward(first, context);
  if (second_.fuses(first.rows(), *norm_, context)) return second_.forward(first, *norm_, context);
  return second_.forward(norm_->forward(first, context), context);
}

const Tensor& Gin::forward_in_stages(const Context& context) {
  const bool transforms = transforms_first(sources_, targets_);
  if (transforms) {
    first_.forward(sources_, 0, inner_, context);
    inner_rounder_.in_place(inner_, context, ops::RoundingRange::columns);
    if (has_own_targets()) {
      first_.forward(targets_, 0, inner_targets_, context);
      inner_rounder_.in_place(inner_targets_, context, ops::RoundingRange::columns);
    }
  }
  Propagation with_gradient = sum;
  with_gradient.has_gradient = transforms || needs_input_gradient() || eps_.trainable;
  if (targets_.absent()) {
    propagate(with_gradient, summed_sources(), combined_, context);
  } else {
    propagate(with_gradient, summed_sources(), {summed_targets(), eps_}, combined_, context);
  }
  if (!transforms) {
    inner_rounder_.in_place(combined_, context);
    first_.forward_dense(combined_, nullptr, hidden_, context, after_first(context));
  }
  return first_epilogue_.forward_in_place(transforms ? combined_ : hidden_, number(), context);
}

// A product of its own finds the moments that a batch norm in training wants.
ops::AggregateUpdatePlan Gin::fused_plan(const Context& context) const {
  const bool wants_moments = moments_ && context.training;
  if (!(sources_ == targets_) || transforms_first(sources_, targets_) || options_.bits > 0 ||
      wants_moments) {
    return {};
  }
  ops::AggregateUpdateOptions options;
  options.precision = sources_.dense("GIN").precision();
  options.in = options_.in;
  options.out = hidden_width(options_);
  options.self = options.self_scale = true;
  options.keep_aggregated = context.training;
  plan_finish(first_epilogue_, context, options);
  return context.required_graph("GIN").fused_update(sum.derivation, options);
}

const Tensor& Gin::forward_fused(const ops::AggregateUpdatePlan& plan, const Context& context) {
  const std::int64_t rows = context.required_graph("GIN").graph().num_rows();
  hidden_.resize(rows, hidden_width(options_));
  ops::AggregateUpdateInputs inputs{sources_.dense("GIN"), first_.weight.used()};
  inputs.self_scale = eps_.used();
  ops::AggregateUpdateOutputs outputs;
  if (context.training) {
    combined_.resize(rows, options_.in);
    outputs.aggregated = combined_;
  }
  return run_and_finish(plan, inputs, outputs, first_epilogue_, hidden_, number(), context);
}

ops::LinearSurroundings Gin::after_first(const Context& context) {
  ops::LinearSurroundings around;
  if (!moments_ || !context.training) return around;
  moments_->known = ops::linear_fuses(device(), storage_of(placement().precision), combined_.rows(),
                                      options_.in, hidden_width(options_));
  if (moments_->known) around.moments = moments_->values;
  return around;
}

void Gin::backward_sum(const Tensor& grad, Tensor& grad_sources, Tensor& grad_targets,
                       const Context& context) {
  if (targets_.absent() || has_own_targets()) {
    propagate_backward(sum, grad, grad_sources, context);
  } else {
    propagate_backward(sum, grad, {grad, eps_}, grad_sources, context);
  }
  if (targets_.absent()) return eps_.gradient.fill(0, context.stream);
  if (has_own_targets()) {
    grad_targets.resize(grad.rows(), grad.cols());
    ops::add_scaled_by(eps_.used(), 1, grad, 0, grad_targets, device(), context.stream);
  }
  if (eps_.trainable) {
    ops::dot(grad, summed_targets(), eps_.gradient, device(), context.stream, context.workspace);
  }
}

Tensor* Gin::backward_pair(Tensor& grad_output, const Context& context) {
  Tensor* grad = second_.backward(grad_output, context);
  const GradientProduct* const product = second_.left_product();
  if (first_takes_normed(product != nullptr, context)) {
    return product != nullptr ? backward_normed({}, product->factors(), context)
                              : backward_normed(std::as_const(*grad), {}, context);
  }
  if (product != nullptr) {
    grad = norm_->backward_product(*product, context);
  } else if (norm_) {
    grad = norm_->backward(*grad, context);
  }
  first_epilogue_.backward(*grad, number(), context);
  return transforms_first(sources_, targets_) ? backward_transformed(*grad, context)
                                              : backward_aggregated(*grad, context);
}

Tensor* Gin::backward_transformed(const Tensor& grad, const Context& context) {
  backward_sum(grad, grad_inner_, grad_inner_targets_, context);
  const bool to_sources = needs_input_gradient() && !sources_.is_sparse();
  first_.backward(sources_, grad_inner_, nullptr, to_sources ? &grad_sources_ : nullptr, context);
  if (has_own_targets()) {
    first_.backward_weight(targets_, grad_inner_targets_, context, true);
    if (needs_input_gradient() && !targets_.is_sparse()) {
      first_.backward_input(grad_inner_targets_, 0, grad_targets_, context);
    }
  }
  return to_sources ? &grad_sources_ : nullptr;
}

Tensor* Gin::backward_aggregated(const Tensor& grad, const Context& context) {
  first_.backward(combined_, grad, nullptr, goes_on() ? &grad_inner_ : nullptr, context);
  return goes_on() ? backward_neighbours(context) : nullptr;
}

bool Gin::first_takes_normed(bool is_product, const Context& context) const {
  if (!norm_ || options_.bits > 0 || transforms_first(sources_, targets_)) return false;
  const auto fuses = goes_on() ? ops::linear_gradient_fuses : ops::linear_weight_gradient_fuses;
  return (goes_on() || !is_product) && norm_->leaves_rows(context) &&
         fuses(device(), storage_of(placement().precision), combined_.rows(), options_.in,
               hidden_width(options_));
}

Tensor* Gin::backward_normed(ops::ConstOperand grad, const ops::GradientFactors& factors,
                             const Context& context) {
  ops::LinearSurroundings around;
  around.normed = norm_->backward_columns(grad, factors, context);
  first_.backward_normed(combined_, grad, goes_on() ? &grad_inner_ : nullptr, context, around);
  return goes_on() ? backward_neighbours(context) : nullptr;
}

Tensor* Gin::backward_neighbours(const Context& context) {
  backward_sum(grad_inner_, grad_sources_, grad_targets_, context);
  return needs_input_gradient() ? &grad_sources_ : nullptr;
}

Tensor* Gin::target_gradient() {
  const bool has_one = needs_input_gradient() && has_own_targets() && !targets_.is_sparse();
  return has_one ? &grad_targets_ : nullptr;
}

bool Gin::append_to(BitSteps& steps) const {
  const auto own = static_cast<float>(1 + eps_.value.item());
  if (transforms_first(sources_, targets_)) {
    const bool rounds = options_.rounds_input && !sources_.is_sparse();
    steps.multiply(describe(), first_, rounds ? &source_rounder_ : nullptr);
    steps.aggregate(describe(), hidden_width(options_), pattern, own, inner_rounder_);
  } else {
    steps.aggregate(describe(), options_.in, pattern, own, source_rounder_);
    steps.multiply(describe(), first_, &inner_rounder_);
  }
  first_epilogue_.append_to(steps);
  if (norm_) norm_->append_to(steps);
  second_.append_to(steps);
  return true;
}

std::string Gin::describe() const {
  return fmt::format("GIN({}, {}, {}{}{}{})", options_.in, hidden_width(options_), options_.out,
                     options_.batch_norm ? ", batch norm" : "",
                     options_.bits > 0 ? fmt::format(", {} bits", options_.bits) : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
