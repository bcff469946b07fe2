// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/sage.hpp"

#include <fmt/format.h>

#include "nn/finish_update.hpp"
#include "tessera/core/error.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/activation.hpp"

namespace tessera::nn {
namespace {

constexpr SageAggregation all_aggregations[] = {SageAggregation::mean, SageAggregation::max,
                                                SageAggregation::gcn};

Propagation propagation_of(SageAggregation aggregation) {
  switch (aggregation) {
    case SageAggregation::max: return {"SAGE", pattern, ops::Reduction::max};
    case SageAggregation::gcn: return {"SAGE", pattern_with_self_loops, ops::Reduction::mean};
    default: return {"SAGE", pattern, ops::Reduction::mean};
  }
}

/// With unit rows, activation and dropout come after them and only the bias before.
EpilogueOptions first_epilogue(const SageOptions& options) {
  EpilogueOptions first;
  first.bias = options.output.bias;
  return options.normalise ? first : options.output;
}

std::int64_t target_width(const SageOptions& options) {
  return options.in_target == 0 ? options.in : options.in_target;
}

}  // namespace

const char* to_string(SageAggregation aggregation) noexcept {
  switch (aggregation) {
    case SageAggregation::mean: return "mean";
    case SageAggregation::max: return "max";
    case SageAggregation::gcn: return "gcn";
  }
  return "unknown";
}

SageAggregation parse_sage_aggregation(const std::string& text) {
  for (const SageAggregation aggregation : all_aggregations) {
    if (text == to_string(aggregation)) return aggregation;
  }
  throw Error(ErrorCode::invalid_argument, "unknown aggregation '" + text + "'", "",
              "use mean, max or gcn");
}

Sage::Sage(const SageOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      neighbours_("lin_l.weight", options.in, options.out, Initial::linear(options.in), placement),
      epilogue_(first_epilogue(options), options.out, placement, Initial::linear(options.in),
                "lin_l.bias"),
      inner_(placement),
      outer_(placement),
      root_sums_(placement),
      unit_(placement),
      grad_inner_(placement),
      grad_sources_(placement),
      grad_targets_(placement) {
  register_parameter(neighbours_.weight);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  if (options.root_weight && options.aggregation != SageAggregation::gcn) {
    root_.emplace("lin_r.weight", target_width(options), options.out,
                  Initial::linear(target_width(options)), placement);
    register_parameter(root_->weight);
  }
  if (options.normalise) {
    EpilogueOptions after = options.output;
    after.bias = false;
    after_unit_.emplace(after, options.out, placement);
  }
}

bool Sage::transforms_first(const Input& sources) const {
  // A maximum does not commute with the product.
  if (options_.aggregation == SageAggregation::max) return false;
  return sources.is_sparse() || options_.out < options_.in;
}

bool Sage::uses_root(const Input& targets) const { return root_ && !targets.absent(); }

void Sage::aggregate(const Tensor& x, Tensor& y, const Context& context) {
  MatrixView<VertexId> winners;
  if (options_.aggregation == SageAggregation::max) {
    const std::int64_t rows = context.required_graph("SAGE").graph().num_rows();
    if (winners_.size() < rows * x.cols()) {
      winners_ = Buffer<VertexId>(checked_area(rows, x.cols()), *placement().memory);
    }
    winners = matrix_in(winners_, rows, x.cols());
  }
  Propagation propagation = propagation_of(options_.aggregation);
  propagation.has_gradient = transforms_first(sources_) || needs_input_gradient();
  propagate(propagation, x, y, context, winners);
}

void Sage::aggregate_backward(const Tensor& grad_y, Tensor& grad_x, const Context& context) {
  MatrixView<const VertexId> winners;
  if (options_.aggregation == SageAggregation::max) {
    winners = matrix_in(winners_, grad_y.rows(), grad_y.cols());
  }
  propagate_backward(propagation_of(options_.aggregation), grad_y, grad_x, context, winners);
}

std::optional<ops::AggregateUpdateOptions> Sage::fusable(const Input& sources, const Input& targets,
                                                         const Context& context) const {
  const bool own_targets = uses_root(targets) && !(sources == targets);
  if (options_.aggregation == SageAggregation::max || sources.is_sparse() || own_targets) return {};
  ops::AggregateUpdateOptions options;
  options.reduction = ops::Reduction::mean;
  options.precision = sources.dense("SAGE").precision();
  options.in = options_.in;
  options.out = options_.out;
  options.root = uses_root(targets);
  options.keep_aggregated = context.training;
  options.backward = context.training && needs_input_gradient();
  plan_finish(epilogue_, context, options);
  return options;
}

ops::AggregateUpdatePlan Sage::fused_plan(const Context& context) const {
  if (!fused_) return {};
  return context.required_graph("SAGE").fused_update(
      propagation_of(options_.aggregation).derivation, *fused_);
}

const Tensor& Sage::forward_fused(const Context& context) {
  const Tensor& x = sources_.dense("SAGE");
  const std::int64_t rows = context.required_graph("SAGE").graph().num_rows();
  outer_.resize(rows, options_.out);
  ops::AggregateUpdateInputs inputs{x, neighbours_.weight.used()};
  if (fused_->root) inputs.root_weight = root_->weight.used();
  ops::AggregateUpdateOutputs outputs;
  if (fused_->keep_aggregated) {
    inner_.resize(rows, options_.in);
    outputs.aggregated = inner_;
  }
  return run_and_finish(fused_plan(context), inputs, outputs, epilogue_, outer_, number(), context);
}

const Tensor& Sage::forward_pair(const Input& sources, const Input& targets,
                                 const Context& context) {
  sources_ = sources;
  targets_ = targets;
  if (options_.aggregation == SageAggregation::gcn && !(sources == targets)) {
    throw Error(ErrorCode::unsupported, "the gcn aggregation has no bipartite form", "SAGE",
                "use mean or max");
  }
  fused_ = transforms_first(sources) ? std::nullopt : fusable(sources, targets, context);
  if (fused_plan(context).empty()) fused_.reset();
  if (transforms_first(sources)) {
    neighbours_.forward(sources, 0, inner_, context);
    if (!after_unit_ && can_finish(epilogue_, inner_, context)) {
      const bool has_root = uses_root(targets);
      if (has_root) root_->forward(targets, 0, root_sums_, context);
      propagate_and_finish(propagation_of(options_.aggregation), inner_,
                           has_root ? &root_sums_ : nullptr, epilogue_, number(), outer_, context);
      return outer_;
    }
    aggregate(inner_, outer_, context);
  } else if (!fused_) {
    aggregate(sources.dense("SAGE max"), inner_, context);
    neighbours_.forward(inner_, 0, outer_, context);
  }
  if (uses_root(targets) && !fused_) root_->forward(targets, 1, outer_, context);
  const Tensor& biased =
      fused_ ? forward_fused(context) : epilogue_.forward_in_place(outer_, number(), context);
  if (!after_unit_) return biased;
  unit_.resize(biased.rows(), biased.cols());
  ops::row_normalise(biased, unit_, 1e-12, device(), context.stream);
  return after_unit_->forward(unit_, number(), context);
}

void Sage::backward_fused(const Tensor& grad, const Context& context) {
  grad_sources_.resize(context.required_graph("SAGE").graph().num_cols(), options_.in);
  ops::AggregateUpdateGradInputs inputs{grad, neighbours_.weight.used()};
  if (fused_->root) inputs.root_weight = root_->weight.used();
  ops::run_backward(fused_plan(context), inputs, {grad_sources_}, context.stream, {},
                    context.workspace);
}

Tensor* Sage::backward_pair(Tensor& grad_output, const Context& context) {
  if (after_unit_) {
    after_unit_->backward(grad_output, number(), context);
    // The unit rows themselves are no longer needed: their place takes the gradient before them.
    ops::row_normalise_backward(outer_, grad_output, unit_, 1e-12, device(), context.stream);
  }
  Tensor& grad = after_unit_ ? unit_ : grad_output;
  epilogue_.backward(grad, number(), context);

  const bool to_sources = needs_input_gradient() && !sources_.is_sparse();
  if (transforms_first(sources_)) {
    aggregate_backward(grad, grad_inner_, context);
    neighbours_.backward(sources_, grad_inner_, nullptr, to_sources ? &grad_sources_ : nullptr,
                         context);
  } else {
    const bool in_stages = to_sources && !fused_;
    neighbours_.backward(inner_, grad, nullptr, in_stages ? &grad_inner_ : nullptr, context);
    if (in_stages) aggregate_backward(grad_inner_, grad_sources_, context);
    if (to_sources && fused_) backward_fused(grad, context);
  }
  if (uses_root(targets_)) {
    root_->backward_weight(targets_, grad, context);
    if (needs_input_gradient() && !targets_.is_sparse() && !fused_) {
      const bool shared = sources_ == targets_;
      root_->backward_input(grad, shared ? 1 : 0, shared ? grad_sources_ : grad_targets_, context);
    }
  } else if (root_) {
    root_->weight.gradient.fill(0, context.stream);
  }
  return to_sources ? &grad_sources_ : nullptr;
}

Tensor* Sage::target_gradient() {
  const bool has_one = needs_input_gradient() && uses_root(targets_) && !targets_.is_sparse() &&
                       !(sources_ == targets_);
  return has_one ? &grad_targets_ : nullptr;
}

std::string Sage::describe() const {
  return fmt::format("SAGE({}, {}, {}{}{})", options_.in, options_.out,
                     to_string(options_.aggregation), options_.normalise ? ", unit rows" : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
