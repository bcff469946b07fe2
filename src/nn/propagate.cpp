// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/propagate.hpp"

#include <cstddef>
#include <type_traits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"

#include "tessera/detail/ops/held_calls.hpp"

namespace tessera::nn {
namespace {

ops::SpmmOptions options_for(const Propagation& propagation, const Tensor& x, bool backward) {
  ops::SpmmOptions options;
  options.reduction = propagation.reduction;
  options.precision = x.precision();
  options.features = x.cols();
  options.edge_values_at_run = false;
  options.edge_value_gradient = false;
  options.backward = backward;
  return options;
}

/// The graph, when all that was to be computed before has been given to the device.
Topology& ready_graph(const Propagation& propagation, const Context& context) {
  ops::release_calls(context.workspace);
  return context.required_graph(propagation.layer);
}

void require_rows(const Propagation& propagation, const Tensor& x, VertexId vertices) {
  if (x.rows() == vertices) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the input has {} rows, but the graph {} vertices", x.rows(), vertices),
              propagation.layer, "give one row of features per vertex");
}

/// The fastest kernels have an epilogue only where rows fill whole vectors. But a small product is
/// done in about the time that a pass of its own takes to begin.
bool finishes_cheaply(const Tensor& x) {
  const auto row_bytes = x.cols() * static_cast<std::int64_t>(bytes_per_element(x.precision()));
  constexpr std::int64_t small = std::int64_t{1} << 20;
  return row_bytes % 16 == 0 || x.rows() * row_bytes <= small;
}

/// Sums do not mix columns: rows can go with what fills them up, and be whole vectors.
bool goes_with_filling(const Propagation& propagation, const Tensor& x, const Tensor& y) {
  const bool sums =
      propagation.reduction == ops::Reduction::sum || propagation.reduction == ops::Reduction::mean;
  return sums && x.stride() > x.cols() && x.stride() == y.stride();
}

bool fills_all(const Propagation& propagation, const Tensor& x, const ScaledResidual& residual,
               const Tensor& y) {
  return goes_with_filling(propagation, x, y) && residual.rows.stride() == x.stride();
}

/// Columns that are summed by themselves, the others after them: of fp32 rows with up to four
/// vectors more than sixteen, for which lanes have two each, the rest would take a third of all
/// lanes. 0: all at once.
std::int64_t summed_first(const Tensor& x, std::int64_t width) {
  constexpr std::int64_t whole = 64, most_rest = 16;
  const bool splits = x.device().kind != DeviceKind::cpu && x.precision() == Precision::fp32 &&
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

ops::SpmmEpilogue scaled_residual() {
  ops::SpmmEpilogue epilogue;
  epilogue.residual = epilogue.residual_scale = true;
  return epilogue;
}

}  // namespace

void propagate(const Propagation& propagation, const Tensor& x, Tensor& y, const Context& context,
               MatrixView<VertexId> winners) {
  Topology& graph = ready_graph(propagation, context);
  require_rows(propagation, x, graph.num_cols());
  y.resize(graph.num_rows(), x.cols());
  const bool backward = context.training && propagation.has_gradient;
  ops::SpmmOptions options = options_for(propagation, x, backward);
  if (goes_with_filling(propagation, x, y)) {
    options.features = x.stride();
    ops::run(graph.spmm(propagation.derivation, options), {x.with_filling()}, {y.with_filling()},
             context.stream);
    return;
  }
  ops::run(graph.spmm(propagation.derivation, options), {x, {}}, {y, winners}, context.stream);
}

void propagate(const Propagation& propagation, const Tensor& x, const ScaledResidual& residual,
               Tensor& y, const Context& context) {
  Topology& graph = ready_graph(propagation, context);
  require_rows(propagation, x, graph.num_cols());
  y.resize(graph.num_rows(), x.cols());
  const bool fills = fills_all(propagation, x, residual, y);
  if (!fills && !finishes_cheaply(x)) {
    propagate(propagation, x, y, context);
    ops::add_scaled_by(residual.scale.used(), 1, residual.rows, 1, y, y.device(), context.stream);
    return;
  }
  ops::SpmmOptions options =
      options_for(propagation, x, context.training && propagation.has_gradient);
  options.epilogue = scaled_residual();
  // What is added to itself gives its gradient to itself.
  if (&residual.rows == &x) options.backward_epilogue = scaled_residual();
  ops::SpmmInputs inputs{x};
  inputs.residual = residual.rows;
  inputs.residual_scale = residual.scale.used();
  ops::SpmmOutputs outputs{y};
  if (fills) {
    options.features = x.stride();
    inputs.x = x.with_filling();
    inputs.residual = residual.rows.with_filling();
    outputs.y = y.with_filling();
  }
  const std::int64_t width = options.features;
  const std::int64_t first = options.backward ? 0 : summed_first(x, width);
  const auto run_columns = [&](std::int64_t begin, std::int64_t count) {
    ops::SpmmInputs some = inputs;
    some.x = columns_of(inputs.x, begin, count);
    some.residual = columns_of(inputs.residual, begin, count);
    options.features = count;
    ops::run(graph.spmm(propagation.derivation, options), some,
             {columns_of(outputs.y, begin, count)}, context.stream);
  };
  if (first > 0) run_columns(0, first);
  run_columns(first, width - first);
}

bool can_finish(const Epilogue& epilogue, const Tensor& x, const Context& context) {
  return finishes_cheaply(x) && epilogue.in_product(context).has_value();
}

void propagate_and_finish(const Propagation& propagation, const Tensor& x, const Tensor* residual,
                          Epilogue& epilogue, std::uint32_t layer_number, Tensor& y,
                          const Context& context) {
  Topology& graph = ready_graph(propagation, context);
  require_rows(propagation, x, graph.num_cols());
  y.resize(graph.num_rows(), x.cols());
  ops::SpmmOptions options =
      options_for(propagation, x, context.training && propagation.has_gradient);
  options.epilogue = epilogue.in_product(context).value();
  options.epilogue.residual = residual != nullptr;
  ops::SpmmInputs inputs{x};
  if (residual != nullptr) inputs.residual = *residual;
  epilogue.give_to_product(inputs, y, layer_number, context);
  ops::run(graph.spmm(propagation.derivation, options), inputs, {y}, context.stream);
}

void propagate_backward(const Propagation& propagation, const Tensor& grad_y, Tensor& grad_x,
                        const Context& context, MatrixView<const VertexId> winners) {
  Topology& graph = ready_graph(propagation, context);
  grad_x.resize(graph.num_cols(), grad_y.cols());
  ops::SpmmOptions options = options_for(propagation, grad_y, true);
  if (goes_with_filling(propagation, grad_y, grad_x)) {
    options.features = grad_y.stride();
    ops::run_backward(graph.spmm_gradient(propagation.derivation, options), {grad_y.with_filling()},
                      {grad_x.with_filling(), {}}, context.stream);
    return;
  }
  ops::run_backward(graph.spmm_gradient(propagation.derivation, options), {grad_y, {}, {}, winners},
                    {grad_x, {}}, context.stream);
}

void propagate_backward(const Propagation& propagation, const Tensor& grad_y,
                        const ScaledResidual& residual, Tensor& grad_x, const Context& context) {
  Topology& graph = ready_graph(propagation, context);
  grad_x.resize(graph.num_cols(), grad_y.cols());
  const bool fills = fills_all(propagation, grad_y, residual, grad_x);
  if (!fills && !finishes_cheaply(grad_y)) {
    propagate_backward(propagation, grad_y, grad_x, context);
    ops::add_scaled_by(residual.scale.used(), 1, residual.rows, 1, grad_x, grad_x.device(),
                       context.stream);
    return;
  }
  ops::SpmmOptions options = options_for(propagation, grad_y, true);
  options.backward_epilogue = scaled_residual();
  ops::SpmmGradInputs inputs{grad_y};
  inputs.residual = residual.rows;
  inputs.residual_scale = residual.scale.used();
  ops::SpmmGradOutputs outputs{grad_x, {}};
  if (fills) {
    options.features = grad_y.stride();
    inputs.grad_y = grad_y.with_filling();
    inputs.residual = residual.rows.with_filling();
    outputs.grad_x = grad_x.with_filling();
  }
  ops::run_backward(graph.spmm_gradient(propagation.derivation, options), inputs, outputs,
                    context.stream);
}

}  // namespace tessera::nn
