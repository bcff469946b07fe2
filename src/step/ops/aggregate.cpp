// SPDX-License-Identifier: Apache-2.0
#include "step/ops/aggregate.hpp"

#include <fmt/format.h>

#include <memory>

#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::step {
namespace {

bool has_winners(const Aggregation& aggregation) {
  return aggregation.reduction == ops::Reduction::max ||
         aggregation.reduction == ops::Reduction::min;
}

/// Sums do not mix columns: rows can go with their padding, and be whole vectors.
bool goes_padded(const Aggregation& aggregation, const ops::ConstOperand& x,
                 const ops::ConstOperand& y) {
  return !has_winners(aggregation) && x.stride > x.cols && x.stride == y.stride;
}

/// The fastest kernels finish rows only where these fill whole vectors. But a small product is done
/// in about the time that a pass of its own takes to begin.
bool finishes_cheaply(const ops::ConstOperand& x) {
  constexpr std::int64_t small = std::int64_t{1} << 20;
  const std::int64_t row_bytes = bytes_of(x.type, x.cols);
  return row_bytes % 16 == 0 || x.rows * row_bytes <= small;
}

template <class AnyOperand>
AnyOperand padded(AnyOperand operand) {
  operand.cols = operand.stride;
  return operand;
}

ops::SpmmOptions options_for(const Aggregation& aggregation, const ops::ConstOperand& x,
                             Precision precision, bool backward) {
  ops::SpmmOptions options;
  options.reduction = aggregation.reduction;
  options.precision = precision;
  options.features = x.cols;
  options.edge_values_at_run = false;
  options.edge_value_gradient = false;
  options.backward = backward;
  return options;
}

/// Winners lie one after the other in a row of numbers of their size.
Shape winners_shape(const Shape& y) { return {1, y.rows * y.cols, Precision::fp32}; }

template <class Id, class AnyOperand>
MatrixView<Id> winners_in(const AnyOperand& row, std::int64_t rows, std::int64_t cols) {
  if (row.absent()) return {};
  return {static_cast<Id*>(row.data), rows, cols, cols, row.device};
}

}  // namespace

void require_rows(const Shape& x, Topology& graph) {
  if (x.rows != graph.num_cols()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the input has {} rows, but the graph {} vertices", x.rows, graph.num_cols()),
        "aggregate", "give one row of features per vertex");
  }
}

std::string Aggregate::describe() const {
  std::string text = fmt::format("aggregate {}", to_string(aggregation_.reduction));
  if (finishes_) text += " " + finishing_.describe();
  return text;
}

void Aggregate::shape(Shapes& shapes) const {
  const Shape& x = shapes.in(0);
  Topology& graph = shapes.graph(aggregation_.graph);
  require_rows(x, graph);
  const Shape y{graph.num_rows(), x.cols, x.precision};
  shapes.set(0, y);
  shapes.set(1, has_winners(aggregation_) ? winners_shape(y) : Shape{});
}

void sum_neighbours(const Pass& pass, const Aggregation& aggregation, ops::ConstOperand x,
                    ops::Operand y, bool backward) {
  ops::SpmmOptions options =
      options_for(aggregation, x, pass.placement().precision, pass.context.training && backward);
  if (goes_padded(aggregation, x, y)) {
    options.features = x.stride;
    x = padded(x);
    y = padded(y);
  }
  ops::run(pass.graph(aggregation.graph).spmm(aggregation.derivation, options), {x}, {y},
           pass.stream);
}

void sum_neighbours_backward(const Pass& pass, const Aggregation& aggregation,
                             ops::ConstOperand grad_y, ops::Operand grad_x,
                             MatrixView<const VertexId> winners) {
  ops::SpmmOptions options = options_for(aggregation, grad_y, pass.placement().precision, true);
  if (goes_padded(aggregation, grad_y, grad_x)) {
    options.features = grad_y.stride;
    grad_y = padded(grad_y);
    grad_x = padded(grad_x);
  }
  ops::run_backward(pass.graph(aggregation.graph).spmm_gradient(aggregation.derivation, options),
                    {grad_y, {}, {}, winners}, {grad_x, {}}, pass.stream);
}

void Aggregate::run(const Pass& pass) const {
  const ops::ConstOperand x = pass.in(0), residual = pass.in(2);
  const ops::Operand y = pass.out(0);
  const bool is_plain = !finishes_ && residual.absent();
  if (!has_winners(aggregation_) && (is_plain || !finishes_cheaply(x))) {
    sum_neighbours(pass, aggregation_, x, y, has_gradient_);
    if (!residual.absent()) ops::add_scaled(1, residual, 1, y, pass.device, pass.stream);
    if (!finishes_) return;
    return ops::bias_activation_dropout(y, pass.in(1), finishing_.options(pass), y, pass.device,
                                        pass.stream);
  }
  ops::SpmmOptions options = options_for(aggregation_, x, pass.placement().precision,
                                         pass.context.training && has_gradient_);
  ops::SpmmInputs inputs{x};
  options.epilogue.residual = !residual.absent();
  inputs.residual = residual;
  if (finishes_) {
    options.epilogue.bias = pass.has(1);
    options.epilogue.activation = finishing_.kind.activation;
    options.epilogue.slope = finishing_.kind.slope;
    options.epilogue.alpha = finishing_.kind.alpha;
    options.epilogue.dropout = finishing_.dropout;
    inputs.bias = pass.in(1);
    inputs.random = pass.context.random(finishing_.number);
    inputs.clock = pass.context.clock;
  }
  ops::SpmmOutputs outputs{y};
  if (has_winners(aggregation_)) {
    outputs.winners = winners_in<VertexId>(pass.out(1), y.rows, y.cols);
  }
  ops::run(pass.graph(aggregation_.graph).spmm(aggregation_.derivation, options), inputs, outputs,
           pass.stream);
}

void Aggregate::differentiate(Adjoint& adjoint) const {
  const Value gradient = gradient_before(adjoint, finishing_, {}, 1);
  if (adjoint.wants(2)) adjoint.give(2, gradient);
  if (!adjoint.wants(0)) return;
  const Value winners = has_winners(aggregation_) ? adjoint.out(1) : Value();
  adjoint.give(0, adjoint.program().append(std::make_shared<AggregateGradient>(aggregation_),
                                           {gradient, winners}));
  auto both_ways = std::make_shared<Aggregate>(*this);
  both_ways->has_gradient_ = true;
  adjoint.replace(std::move(both_ways));
}

std::string AggregateGradient::describe() const {
  return fmt::format("aggregate_gradient {}", to_string(aggregation_.reduction));
}

void AggregateGradient::shape(Shapes& shapes) const {
  const Shape& y = shapes.in(0);
  shapes.set(0, {shapes.graph(aggregation_.graph).num_cols(), y.cols, y.precision});
}

void AggregateGradient::run(const Pass& pass) const {
  const ops::ConstOperand grad_y = pass.in(0);
  sum_neighbours_backward(pass, aggregation_, grad_y, pass.out(0),
                          winners_in<const VertexId>(pass.in(1), grad_y.rows, grad_y.cols));
}

Value aggregate(Program& program, Value x, const Aggregation& aggregation) {
  return program.append(std::make_shared<Aggregate>(aggregation), {x, {}, {}});
}

}  // namespace tessera::step
