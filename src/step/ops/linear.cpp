// SPDX-License-Identifier: Apache-2.0
#include "step/ops/linear.hpp"

#include <fmt/format.h>

#include <memory>

#include "step/ops/finish.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/step/nodes.hpp"

namespace tessera::step {
namespace {

using ops::Transpose;

Precision arithmetic_of(const Parameter& weight) { return weight.value.precision(); }

/// The shape of y, when x fits the weight.
Shape product_shape(const Shapes& shapes, const Shape& x) {
  const Shape& weight = shapes.in(1);
  if (x.cols != weight.cols) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the input has {} features, but the weight is {} x {}", x.cols,
                            weight.rows, weight.cols),
                "linear", fmt::format("give it {} features", weight.cols));
  }
  return {x.rows, weight.rows, shapes.placement().precision};
}

ops::SpmmOptions product_options(const Parameter& weight, bool backward) {
  ops::SpmmOptions options;
  options.precision = weight.used().precision();
  options.features = weight.value.rows();
  options.edge_value_gradient = false;
  options.backward = backward;
  return options;
}

}  // namespace

std::string Linear::describe() const {
  return fmt::format("linear{}{}", adds_ ? " added to a matrix" : "", relu_ ? " relu" : "");
}

void Linear::shape(Shapes& shapes) const { shapes.set(0, product_shape(shapes, shapes.in(0))); }

void Linear::run(const Pass& pass) const {
  const Parameter& weight = *pass.parameter(1);
  if (adds_) {
    ops::gemm(Transpose::no, Transpose::yes, 1, pass.in(0), pass.in(1), 1, pass.out(0), pass.device,
              pass.stream, pass.context.workspace, arithmetic_of(weight));
    return;
  }
  ops::LinearSurroundings around;
  around.relu_behind = relu_;
  ops::linear(pass.in(0), pass.in(1), pass.in(2), pass.out(0), pass.device, pass.stream,
              pass.context.workspace, arithmetic_of(weight), around);
}

void Linear::differentiate(Adjoint& adjoint) const {
  constexpr std::size_t x = 0, weight = 1, bias = 2, added = 3;
  Finishing relu;
  if (relu_) relu.kind.activation = ops::Activation::relu;
  // The sum over the rows is found with the other gradients, where nothing else follows.
  const bool sums_with_product = !relu_ && adjoint.wants(bias);
  const Value gradient =
      sums_with_product ? adjoint.gradient() : gradient_before(adjoint, relu, {}, bias);
  const std::vector<Value> found = adjoint.program().append_all(
      std::make_shared<LinearGradient>(), {adjoint.in(x), adjoint.in(weight), gradient, {}});
  if (adjoint.wants(x)) adjoint.give(x, found[0]);
  if (adjoint.wants(weight)) adjoint.give(weight, found[1]);
  if (sums_with_product) adjoint.give(bias, found[2]);
  if (adjoint.wants(added)) adjoint.give(added, gradient);
}

std::string LinearGradient::describe() const {
  return adds_ ? "linear_gradient added to a matrix" : "linear_gradient";
}

void LinearGradient::shape(Shapes& shapes) const {
  const Shape& y = shapes.in(2);
  shapes.set(0, {y.rows, shapes.in(1).cols, y.precision});
  shapes.set(1, shapes.in(1));
  shapes.set(2, {1, y.cols, y.precision});
}

void LinearGradient::run(const Pass& pass) const {
  const Precision arithmetic = arithmetic_of(*pass.parameter(1));
  const ops::Operand grad_x = pass.out(0);
  const ops::Operand grad_weight = pass.out(1), grad_bias = pass.out(2);
  const bool is_one_call = !adds_ && !grad_x.absent();
  if (is_one_call || !grad_weight.absent() || !grad_bias.absent()) {
    ops::linear_backward(pass.in(0), pass.in(1), pass.in(2), grad_weight, grad_bias,
                         is_one_call ? grad_x : ops::Operand(), pass.device, pass.stream,
                         pass.context.workspace, arithmetic);
  }
  if (is_one_call || grad_x.absent()) return;
  ops::gemm(Transpose::no, Transpose::no, 1, pass.in(2), pass.in(1), 1, grad_x, pass.device,
            pass.stream, pass.context.workspace, arithmetic);
}

void SparseLinear::shape(Shapes& shapes) const {
  shapes.set(0, product_shape(shapes, shapes.in(0)));
  const Shape& weight = shapes.in(1);
  shapes.set(1, {weight.cols, weight.rows, weight.precision});
}

void SparseLinear::run(const Pass& pass) const {
  Parameter& weight = *pass.parameter(1);
  const Input& x = pass.given(0);
  // An optimiser keeps the transposed weight up to date.
  ops::ConstOperand transposed = pass.out(1);
  if (weight.has_optimiser) {
    transposed = weight.turned(pass.stream);
  } else {
    ops::transpose(pass.in(1), pass.out(1), pass.device, pass.stream);
  }
  ops::run(x.sparse().spmm(as_given, product_options(weight, pass.context.training)),
           {transposed, x.values()}, {pass.out(0)}, pass.stream);
}

void SparseLinear::differentiate(Adjoint& adjoint) const {
  if (!adjoint.wants(1)) return;
  adjoint.give(1, adjoint.program().append(std::make_shared<SparseLinearGradient>(),
                                           {adjoint.in(0), adjoint.in(1), adjoint.gradient()}));
}

void SparseLinearGradient::shape(Shapes& shapes) const {
  const Shape& weight = shapes.in(1);
  shapes.set(0, weight);
  shapes.set(1, {weight.cols, weight.rows, weight.precision});
}

void SparseLinearGradient::run(const Pass& pass) const {
  Parameter& weight = *pass.parameter(1);
  const Input& x = pass.given(0);
  const auto product_into = [&](ops::Operand transposed) {
    ops::run_backward(x.sparse().spmm(as_given, product_options(weight, true)),
                      {pass.in(2), {}, x.values(), {}}, {transposed, {}}, pass.stream);
  };
  // An optimiser takes the gradient transposed, as it comes.
  if (Parameter* const own = pass.gradient_of(0); own != nullptr && own->has_optimiser) {
    return product_into(own->turned_gradient());
  }
  product_into(pass.out(1));
  ops::transpose(pass.out(1), pass.out(0), pass.device, pass.stream);
}

Value linear(Program& program, Value x, Value weight) {
  if (program.info(x).is_sparse) {
    return program.append(std::make_shared<SparseLinear>(), {x, weight});
  }
  return program.append(std::make_shared<Linear>(), {x, weight, {}, {}});
}

}  // namespace tessera::step
