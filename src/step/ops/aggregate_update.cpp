// SPDX-License-Identifier: Apache-2.0
#include "step/ops/aggregate_update.hpp"

#include <memory>
#include <utility>

#include "step/ops/aggregate.hpp"
#include "step/ops/linear.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::step {
namespace {

using ops::Transpose;

constexpr std::size_t aggregated = 1;  // the scratch of the forward node
/// Of the gradient: inputs behind those of forward, and its scratch.
constexpr std::size_t sums = AggregateUpdate::num_in, gradient = sums + 1;
constexpr std::size_t grad_aggregated = AggregateUpdate::num_in;

OwnRows own_rows(const Pass& pass, ops::ConstOperand rows) {
  if (!pass.has(AggregateUpdate::scale)) return {};
  return {rows, pass.in(AggregateUpdate::scale)};
}

}  // namespace

std::string AggregateUpdate::describe() const {
  std::string text = std::string("aggregate_update ") + to_string(aggregation_.reduction);
  return finishes_ ? text + " " + finishing_.describe() : text;
}

template <class Node>
ops::AggregateUpdatePlan AggregateUpdate::plan(const Node& node, std::int64_t in,
                                               std::int64_t out) const {
  ops::AggregateUpdateOptions options;
  options.reduction = aggregation_.reduction;
  options.precision = node.placement().precision;
  options.in = in;
  options.out = out;
  options.root = node.has(root);
  options.self = options.self_scale = node.has(scale);
  options.keep_aggregated = has_gradient_;
  // The gradient of own rows goes in stages.
  options.backward = to_input_ && !node.has(scale);
  options.bias = node.has(bias);
  options.activation = finishing_.kind.activation;
  options.slope = finishing_.kind.slope;
  options.alpha = finishing_.kind.alpha;
  options.dropout = finishing_.dropout;
  return node.graph(aggregation_.graph).fused_update(aggregation_.derivation, std::move(options));
}

void AggregateUpdate::shape(Shapes& shapes) const {
  const Shape& features = shapes.in(x);
  const Shape& weights = shapes.in(weight);
  Topology& graph = shapes.graph(aggregation_.graph);
  require_rows(features, graph);
  shapes.set(0, graph.num_rows(), weights.rows);
  const bool keeps = has_gradient_ || plan(shapes, features.cols, weights.rows).empty();
  shapes.set(aggregated,
             keeps ? Shape{graph.num_rows(), features.cols, features.precision} : Shape{});
}

void AggregateUpdate::run(const Pass& pass) const {
  const ops::ConstOperand features = pass.in(x), weights = pass.in(weight);
  const ops::AggregateUpdatePlan fused = plan(pass, features.cols, weights.rows);
  if (fused.empty()) return run_stages(pass);
  ops::AggregateUpdateInputs inputs{features, weights};
  inputs.root_weight = pass.in(root);
  inputs.self_scale = pass.in(scale);
  inputs.bias = pass.in(bias);
  inputs.random = pass.context.random(finishing_.number);
  inputs.clock = pass.context.clock;
  ops::AggregateUpdateOutputs outputs{pass.out(0), {}};
  if (has_gradient_) outputs.aggregated = pass.out(aggregated);
  ops::run(fused, inputs, outputs, pass.stream, {}, pass.context.workspace);
}

void AggregateUpdate::run_stages(const Pass& pass) const {
  const ops::Operand summed = pass.out(aggregated), y = pass.out(0);
  const Precision arithmetic = arithmetic_of(pass.placement());
  const bool adds_bias = finishing_.is_linear();
  sum_neighbours(pass, aggregation_, pass.in(x), own_rows(pass, pass.in(x)), summed, to_input_);
  ops::linear(summed, pass.in(weight), adds_bias ? pass.in(bias) : ops::ConstOperand(), y,
              pass.device, pass.stream, pass.context.workspace, arithmetic);
  if (pass.has(root)) {
    ops::gemm(Transpose::no, Transpose::yes, 1, pass.in(x), pass.in(root), 1, y, pass.device,
              pass.stream, pass.context.workspace, arithmetic);
  }
  if (adds_bias) return;
  ops::bias_activation_dropout(y, pass.in(bias), finishing_.options(pass), y, pass.device,
                               pass.stream);
}

void AggregateUpdate::differentiate(Adjoint& adjoint) const {
  auto both_ways = std::make_shared<AggregateUpdate>(*this);
  both_ways->has_gradient_ = true;
  both_ways->to_input_ = adjoint.wants(x) || adjoint.wants(scale);
  // The sum over the rows is found with the other gradients, where nothing else follows.
  const bool sums_rows = finishing_.is_linear() && adjoint.wants(bias);
  std::vector<Value> in;
  for (std::size_t i = 0; i < num_in; ++i) in.push_back(adjoint.in(i));
  in.push_back(adjoint.out(aggregated));
  in.push_back(sums_rows ? adjoint.gradient() : gradient_before(adjoint, finishing_, {}, bias));
  const std::vector<Value> found = adjoint.program().append_all(
      std::make_shared<AggregateUpdateGradient>(*both_ways, sums_rows), std::move(in));
  for (const std::size_t i : {x, weight, root, scale}) {
    if (adjoint.wants(i)) adjoint.give(i, found[i]);
  }
  if (sums_rows) adjoint.give(bias, found[bias]);
  adjoint.replace(std::move(both_ways));
}

void AggregateUpdateGradient::shape(Shapes& shapes) const {
  for (std::size_t i = 0; i < num_outputs(); ++i) {
    shapes.set(i, shapes.has(i) ? shapes.in(i) : Shape{});
  }
  const Shape& summed = shapes.in(sums);
  const bool is_staged =
      forward_.to_input_ &&
      (shapes.has(AggregateUpdate::scale) ||
       forward_.plan(shapes, summed.cols, shapes.in(AggregateUpdate::weight).rows).empty());
  shapes.set(grad_aggregated, is_staged ? summed : Shape{});
}

void AggregateUpdateGradient::run(const Pass& pass) const {
  using Forward = AggregateUpdate;
  const ops::ConstOperand features = pass.in(Forward::x), weights = pass.in(Forward::weight);
  const ops::ConstOperand roots = pass.in(Forward::root), grad_y = pass.in(gradient);
  const Precision arithmetic = arithmetic_of(pass.placement());
  const ops::Operand grad_x = pass.out(Forward::x), grad_scale = pass.out(Forward::scale);
  const ops::AggregateUpdatePlan fused = pass.has(Forward::scale)
                                             ? ops::AggregateUpdatePlan()
                                             : forward_.plan(pass, features.cols, weights.rows);
  const bool is_staged = forward_.to_input_ && fused.empty();
  const ops::Operand grad_sums = is_staged ? pass.out(grad_aggregated) : ops::Operand();
  ops::linear_backward(pass.in(sums), is_staged ? weights : ops::ConstOperand(), grad_y,
                       pass.out(Forward::weight), sums_ ? pass.out(Forward::bias) : ops::Operand(),
                       grad_sums, pass.device, pass.stream, pass.context.workspace, arithmetic);
  if (!grad_scale.absent()) {
    ops::dot(grad_sums, features, grad_scale, pass.device, pass.stream, pass.context.workspace);
  }
  if (is_staged && !grad_x.absent()) {
    sum_neighbours_backward(pass, forward_.aggregation_, grad_sums, own_rows(pass, grad_sums),
                            grad_x);
  } else if (!grad_x.absent()) {
    ops::AggregateUpdateGradInputs inputs{grad_y, weights};
    inputs.root_weight = roots;
    ops::run_backward(fused, inputs, {grad_x}, pass.stream, {}, pass.context.workspace);
  }
  if (roots.absent()) return;
  if (const ops::Operand grad_root = pass.out(Forward::root); !grad_root.absent()) {
    ops::gemm(Transpose::yes, Transpose::no, 1, grad_y, features, 0, grad_root, pass.device,
              pass.stream, pass.context.workspace, arithmetic);
  }
  if (is_staged && !grad_x.absent()) {
    ops::gemm(Transpose::no, Transpose::no, 1, grad_y, roots, 1, grad_x, pass.device, pass.stream,
              pass.context.workspace, arithmetic);
  }
}

}  // namespace tessera::step
