// SPDX-License-Identifier: Apache-2.0
#include "step/ops/aggregate.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

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

ops::SpmmEpilogue scaled_residual() {
  ops::SpmmEpilogue epilogue;
  epilogue.residual = epilogue.residual_scale = true;
  return epilogue;
}

bool same_matrix(const ops::ConstOperand& a, const ops::ConstOperand& b) {
  return a.data == b.data && a.rows == b.rows && a.cols == b.cols;
}

void add_own(const Pass& pass, const OwnRows& own, ops::Operand y) {
  ops::add_scaled_by(own.scale, 1, own.rows, 1, y, pass.device, pass.stream);
}

/// Columns that are summed by themselves, the others after them: of fp32 rows with up to four
/// vectors more than sixteen, for which lanes have two each, the rest would take a third of all
/// lanes. 0: all at once.
std::int64_t summed_first(const ops::ConstOperand& x, std::int64_t width) {
  constexpr std::int64_t whole = 64, most_rest = 16;
  const bool splits = x.device.kind != DeviceKind::cpu && x.type == ElementType::fp32 &&
                      width > whole && width <= whole + most_rest && width % 4 == 0;
  return splits ? whole : 0;
}

template <class AnyOperand>
AnyOperand columns_of(AnyOperand operand, std::int64_t first, std::int64_t count) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(operand.data)>>,
                                  const std::byte, std::byte>;
  operand.data = static_cast<Byte*>(operand.data) + bytes_of(operand.type, first);
  operand.cols = count;
  return operand;
}

/// Sums with own rows by one kernel.
void sum_with_own(const Pass& pass, const Aggregation& aggregation, ops::SpmmOptions options,
                  const ops::SpmmInputs& inputs, ops::Operand y) {
  const std::int64_t width = options.features;
  const std::int64_t first = options.backward ? 0 : summed_first(inputs.x, width);
  const auto run_columns = [&](std::int64_t begin, std::int64_t count) {
    ops::SpmmInputs some = inputs;
    some.x = columns_of(inputs.x, begin, count);
    some.residual = columns_of(inputs.residual, begin, count);
    options.features = count;
    ops::run(pass.graph(aggregation.graph).spmm(aggregation.derivation, options), some,
             {columns_of(y, begin, count)}, pass.stream);
  };
  if (first > 0) run_columns(0, first);
  run_columns(first, width - first);
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

std::shared_ptr<const Aggregate> Aggregate::of_scaled(const Aggregate& plain, Derivation rows,
                                                      Derivation columns) {
  auto scaled = std::make_shared<Aggregate>(plain);
  scaled->both_ = plain.aggregation_.derivation;
  scaled->aggregation_.derivation = rows;
  scaled->gradient_ = columns;
  return scaled;
}

std::string Aggregate::describe() const {
  std::string text = fmt::format("aggregate {}", to_string(aggregation_.reduction));
  if (both_ != nullptr) text += " of scaled";
  if (finishes_) text += " " + finishing_.describe();
  return text;
}

void Aggregate::shape(Shapes& shapes) const {
  const Shape& features = shapes.in(x);
  Topology& graph = shapes.graph(aggregation_.graph);
  require_rows(features, graph);
  const Shape y{graph.num_rows(), features.cols, features.precision};
  shapes.set(0, y);
  shapes.set(1, has_winners(aggregation_) ? winners_shape(y) : Shape{});
}

void sum_neighbours(const Pass& pass, const Aggregation& aggregation, ops::ConstOperand x,
                    const OwnRows& own, ops::Operand y, bool backward) {
  ops::SpmmOptions options =
      options_for(aggregation, x, pass.placement().precision, pass.context.training && backward);
  const bool has_own = !own.rows.absent();
  ops::SpmmInputs inputs{x};
  inputs.residual = own.rows;
  const bool is_padded =
      goes_padded(aggregation, x, y) && (!has_own || own.rows.stride == x.stride);
  if (has_own && !is_padded && !finishes_cheaply(x)) {
    sum_neighbours(pass, aggregation, x, {}, y, backward);
    return add_own(pass, own, y);
  }
  if (is_padded) {
    options.features = x.stride;
    inputs.x = padded(x);
    if (has_own) inputs.residual = padded(own.rows);
    y = padded(y);
  }
  if (!has_own) {
    return ops::run(pass.graph(aggregation.graph).spmm(aggregation.derivation, options), inputs,
                    {y}, pass.stream);
  }
  options.epilogue = scaled_residual();
  // What is added to itself gives its gradient to itself.
  if (same_matrix(own.rows, x)) options.backward_epilogue = scaled_residual();
  inputs.residual_scale = own.scale;
  sum_with_own(pass, aggregation, options, inputs, y);
}

void sum_neighbours_backward(const Pass& pass, const Aggregation& aggregation,
                             ops::ConstOperand grad_y, const OwnRows& own, ops::Operand grad_x,
                             MatrixView<const VertexId> winners) {
  ops::SpmmOptions options = options_for(aggregation, grad_y, pass.placement().precision, true);
  const bool has_own = !own.rows.absent();
  const bool is_padded =
      goes_padded(aggregation, grad_y, grad_x) && (!has_own || own.rows.stride == grad_y.stride);
  if (has_own && !is_padded && !finishes_cheaply(grad_y)) {
    sum_neighbours_backward(pass, aggregation, grad_y, {}, grad_x, winners);
    return add_own(pass, own, grad_x);
  }
  ops::SpmmGradInputs inputs{grad_y, {}, {}, winners};
  if (has_own) {
    options.backward_epilogue = scaled_residual();
    inputs.residual = own.rows;
    inputs.residual_scale = own.scale;
  }
  if (is_padded) {
    options.features = grad_y.stride;
    inputs.grad_y = padded(grad_y);
    if (has_own) inputs.residual = padded(own.rows);
    grad_x = padded(grad_x);
  }
  ops::run_backward(pass.graph(aggregation.graph).spmm_gradient(aggregation.derivation, options),
                    inputs, {grad_x, {}}, pass.stream);
}

void Aggregate::run(const Pass& pass) const {
  const ops::ConstOperand features = pass.in(x), added = pass.in(residual);
  const ops::Operand y = pass.out(0);
  if (pass.has(scale)) {
    return sum_neighbours(pass, aggregation_, features, {added, pass.in(scale)}, y, has_gradient_);
  }
  const bool is_plain = !finishes_ && added.absent();
  if (is_sum() && (is_plain || !finishes_cheaply(features))) {
    sum_neighbours(pass, aggregation_, features, {}, y, has_gradient_ && gradient_ == nullptr);
    if (!added.absent()) ops::add_scaled(1, added, 1, y, pass.device, pass.stream);
    if (!finishes_) return;
    return ops::bias_activation_dropout(y, pass.in(bias), finishing_.options(pass), y, pass.device,
                                        pass.stream);
  }
  ops::SpmmOptions options =
      options_for(aggregation_, features, pass.placement().precision,
                  pass.context.training && has_gradient_ && gradient_ == nullptr);
  ops::SpmmInputs inputs{features};
  if (finishes_) finish_by_product(pass, finishing_, bias, options, inputs);
  options.epilogue.residual = !added.absent();
  inputs.residual = added;
  ops::SpmmOutputs outputs{y};
  if (has_winners(aggregation_)) {
    outputs.winners = winners_in<VertexId>(pass.out(1), y.rows, y.cols);
  }
  ops::run(pass.graph(aggregation_.graph).spmm(aggregation_.derivation, options), inputs, outputs,
           pass.stream);
}

void Aggregate::differentiate(Adjoint& adjoint) const {
  Program& program = adjoint.program();
  Value gradient = gradient_before(adjoint, finishing_, {}, bias);
  const bool is_own = adjoint.has(scale) && adjoint.in(residual) == adjoint.in(x);
  if (adjoint.wants(scale)) {
    adjoint.give(scale, program.append(std::make_shared<Dot>(), {gradient, adjoint.in(residual)}));
  }
  if (adjoint.wants(residual) && !is_own) {
    adjoint.give(residual, adjoint.has(scale) ? program.append(std::make_shared<ScaleByNumber>(),
                                                               {gradient, adjoint.in(scale)})
                                              : gradient);
  }
  if (!adjoint.wants(x)) return;
  Aggregation transposed = aggregation_;
  if (gradient_ != nullptr) {
    gradient = program.append(
        std::make_shared<ScaleRows>(both_, aggregation_.graph, ScaleRows::Side::rows), {gradient});
    transposed.derivation = gradient_;
  }
  adjoint.give(x, program.append(std::make_shared<AggregateGradient>(transposed),
                                 {gradient, has_winners(aggregation_) ? adjoint.out(1) : Value(),
                                  is_own ? adjoint.in(scale) : Value()}));
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
  const ops::ConstOperand grad_y = pass.in(0), scale = pass.in(2);
  const OwnRows own = scale.absent() ? OwnRows{} : OwnRows{grad_y, scale};
  sum_neighbours_backward(pass, aggregation_, grad_y, own, pass.out(0),
                          winners_in<const VertexId>(pass.in(1), grad_y.rows, grad_y.cols));
}

void ScaleRows::shape(Shapes& shapes) const { shapes.set(0, shapes.in(0).rows, shapes.in(0).cols); }

void ScaleRows::run(const Pass& pass) const {
  Topology& graph = pass.graph(graph_);
  const Tensor* const scale = side_ == Side::rows ? graph.row_scale(derivation_, pass.placement())
                                                  : graph.col_scale(derivation_, pass.placement());
  ops::scale_rows(pass.in(0), *scale, pass.out(0), pass.device, pass.stream);
}

void ScaleByNumber::run(const Pass& pass) const {
  ops::add_scaled_by(pass.in(1), 1, pass.in(0), 0, pass.out(0), pass.device, pass.stream);
}

void Dot::run(const Pass& pass) const {
  ops::dot(pass.in(0), pass.in(1), pass.out(0), pass.device, pass.stream, pass.context.workspace);
}

void FirstRows::shape(Shapes& shapes) const {
  const Shape& all = shapes.in(0);
  const std::int64_t rows = shapes.graph(graph_).num_rows();
  if (rows > all.rows) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} targets among {} sources", rows, all.rows), "step",
                "give the targets' features, too: forward(sources, targets, context)");
  }
  shapes.set(0, {rows, all.cols, all.precision});
}

void FirstRows::run(const Pass& pass) const {
  const ops::Operand y = pass.out(0);
  ops::ConstOperand first = pass.in(0);
  first.rows = y.rows;
  ops::copy(first, y, pass.device, pass.stream);
}

namespace {

/// In: the gradient of the first rows, and x. Out: that of x, of which the other rows are 0.
class FirstRowsGradient final : public Op {
 public:
  std::string describe() const override { return "first_rows_gradient"; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(1)); }
  void run(const Pass& pass) const override {
    const ops::ConstOperand gradient = pass.in(0);
    const ops::Operand all = pass.out(0);
    ops::Operand first = all, rest = all;
    first.rows = gradient.rows;
    rest.rows = all.rows - gradient.rows;
    rest.data = static_cast<std::byte*>(all.data) + bytes_of(all.type, gradient.rows * all.stride);
    ops::copy(gradient, first, pass.device, pass.stream);
    if (rest.rows > 0) ops::fill(rest, 0, pass.device, pass.stream);
  }
  bool reads(std::size_t input) const override { return input == 0; }
};

}  // namespace

void FirstRows::differentiate(Adjoint& adjoint) const {
  adjoint.give(0, adjoint.program().append(std::make_shared<FirstRowsGradient>(),
                                           {adjoint.gradient(), adjoint.in(0)}));
}

namespace {

Aggregation of_step(const Program& program, Aggregation aggregation) {
  aggregation.graph = program.absolute_graph(aggregation.graph);
  return aggregation;
}

}  // namespace

Value aggregate(Program& program, Value x, const Aggregation& aggregation) {
  return program.append(std::make_shared<Aggregate>(of_step(program, aggregation)),
                        {x, {}, {}, {}});
}

Value aggregate_with_own(Program& program, Value x, Value own, Value scale,
                         const Aggregation& aggregation) {
  return program.append(std::make_shared<Aggregate>(of_step(program, aggregation)),
                        {x, {}, own, scale});
}

Value first_rows(Program& program, Value x, int graph) {
  if (program.info(x).is_sparse) {
    throw Error(ErrorCode::unsupported, "a sparse input and a graph that is not square", "step",
                "give dense features");
  }
  return program.append(std::make_shared<FirstRows>(program.absolute_graph(graph)), {x});
}

}  // namespace tessera::step
