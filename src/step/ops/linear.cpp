// SPDX-License-Identifier: Apache-2.0
#include "step/ops/linear.hpp"

#include <fmt/format.h>

#include <memory>

#include "step/ops/finish.hpp"
#include "step/ops/numbers.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/call_chain.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/step/nodes.hpp"

namespace tessera::step {
namespace {

using ops::Transpose;

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

ops::SpmmOptions product_options(const Shape& weight, Precision precision, bool backward) {
  ops::SpmmOptions options;
  options.precision = precision;
  options.features = weight.rows;
  options.edge_value_gradient = false;
  options.backward = backward;
  return options;
}

constexpr std::int64_t num_moments = 3, num_norm_sums = 2;

}  // namespace

Precision arithmetic_of(const Placement& placement) { return placement.wide().precision; }

std::string Linear::describe() const {
  return fmt::format("linear{}{}{}{}{}", form_.reads_norm ? " of normed" : "",
                     form_.reads_norm && form_.norm_relu ? " relu" : "",
                     form_.adds ? " added to a matrix" : "", form_.relu ? " relu" : "",
                     form_.finds_moments ? " with moments" : "");
}

void Linear::shape(Shapes& shapes) const {
  Shape product = product_shape(shapes, shapes.in(x));
  if (form_.is_wide) product.precision = shapes.placement().wide().precision;
  shapes.set(y, product);
  shapes.set(moments, numbers_shape(num_moments, product.cols, Precision::fp64));
}

void Linear::run(const Pass& pass) const {
  const Precision arithmetic = arithmetic_of(pass.placement());
  if (form_.adds || form_.is_wide) {
    ops::gemm(Transpose::no, Transpose::yes, 1, pass.in(x), pass.in(weight), form_.adds ? 1 : 0,
              pass.out(y), pass.device, pass.stream, pass.context.workspace, arithmetic);
    return;
  }
  ops::LinearSurroundings around;
  around.relu_behind = form_.relu;
  around.columns = numbers_in(pass.in(columns), pass.in(weight).cols);
  around.relu = form_.norm_relu;
  around.moments = numbers_in(pass.out(moments), num_moments);
  ops::linear(pass.in(form_.reads_norm ? source : x), pass.in(weight), pass.in(bias), pass.out(y),
              pass.device, pass.stream, pass.context.workspace, arithmetic, around, pass.chain);
}

void Linear::differentiate(Adjoint& adjoint) const {
  Finishing relu;
  if (form_.relu) relu.kind.activation = ops::Activation::relu;
  // The sum over the rows is found with the other gradients, where nothing else follows.
  const bool sums_with_product = !form_.relu && adjoint.wants(bias);
  const Value gradient =
      sums_with_product ? adjoint.gradient() : gradient_before(adjoint, relu, {}, bias);
  std::vector<Value> in(LinearGradient::num_in);
  in[LinearGradient::x] = adjoint.in(x);
  in[LinearGradient::weight] = adjoint.in(weight);
  in[LinearGradient::grad_y] = gradient;
  if (form_.reads_norm) {
    in[LinearGradient::source] = adjoint.in(source);
    in[LinearGradient::columns] = adjoint.in(columns);
  }
  const LinearGradient::Form form{.reads_norm = form_.reads_norm, .norm_relu = form_.norm_relu};
  const std::vector<Value> found =
      adjoint.program().append_all(std::make_shared<LinearGradient>(form), std::move(in));
  if (adjoint.wants(x)) adjoint.give(x, found[LinearGradient::grad_x]);
  if (adjoint.wants(weight)) adjoint.give(weight, found[LinearGradient::grad_weight]);
  if (sums_with_product) adjoint.give(bias, found[LinearGradient::grad_bias]);
  if (adjoint.wants(added)) adjoint.give(added, gradient);
}

std::string LinearGradient::describe() const {
  return fmt::format("linear_gradient{}{}{}{}", form_.is_normed ? " from normed" : "",
                     form_.reads_norm ? " of normed" : "", form_.adds ? " added to a matrix" : "",
                     form_.before_relu ? " before relu" : "");
}

void LinearGradient::shape(Shapes& shapes) const {
  const Shape& gradient = shapes.in(grad_y);
  const Shape& weights = shapes.in(weight);
  shapes.set(grad_x, {gradient.rows, weights.cols, gradient.precision});
  shapes.set(grad_weight, weights);
  shapes.set(grad_bias, {1, weights.rows, gradient.precision});
  shapes.set(x_sums, {1, weights.cols, gradient.precision});
  shapes.set(norm_sums, numbers_shape(num_norm_sums, weights.cols, Precision::fp64));
}

void LinearGradient::run(const Pass& pass) const {
  const Precision arithmetic = arithmetic_of(pass.placement());
  const ops::Operand to_x = pass.out(grad_x);
  const ops::Operand to_weight = pass.out(grad_weight), to_bias = pass.out(grad_bias);
  ops::LinearSurroundings around;
  around.columns = numbers_in(pass.in(columns), pass.in(weight).cols);
  around.relu = form_.norm_relu;
  around.before_relu = form_.before_relu;
  around.grad_x_sums = pass.out(x_sums);
  around.norm_sums = numbers_in(pass.out(norm_sums), num_norm_sums);
  if (form_.is_normed) {
    around.normed.y = pass.in(normed_y);
    around.normed.columns = numbers_in(pass.in(normed_columns), pass.in(weight).rows);
    around.normed.relu = form_.normed_relu;
    around.normed.factors = {pass.in(left), pass.in(right)};
  }
  const bool is_one_call = !form_.adds && !to_x.absent();
  if (is_one_call || !to_weight.absent() || !to_bias.absent()) {
    ops::linear_backward(pass.in(form_.reads_norm ? source : x), pass.in(weight),
                         pass.in(form_.is_normed ? normed_grad : grad_y), to_weight, to_bias,
                         is_one_call ? to_x : ops::Operand(), pass.device, pass.stream,
                         pass.context.workspace, arithmetic, around, pass.chain);
  }
  if (is_one_call || to_x.absent()) return;
  if (pass.chain != nullptr) pass.chain->run();
  ops::gemm(Transpose::no, Transpose::no, 1, pass.in(grad_y), pass.in(weight), 1, to_x, pass.device,
            pass.stream, pass.context.workspace, arithmetic);
}

std::string SparseLinear::describe() const {
  std::string text = "linear of a sparse matrix";
  return finishes_ ? text + " " + finishing_.describe() : text;
}

void SparseLinear::shape(Shapes& shapes) const {
  shapes.set(0, product_shape(shapes, shapes.in(0)));
  const Shape& weight = shapes.in(1);
  shapes.set(1, {weight.cols, weight.rows, weight.precision});
}

void SparseLinear::run(const Pass& pass) const {
  const Input& x = pass.given(0);
  // An optimiser keeps the transposed weight up to date.
  ops::SpmmInputs inputs{pass.out(1), x.values()};
  if (Parameter* const weight = pass.parameter(1); weight != nullptr && weight->has_optimiser) {
    inputs.x = weight->turned(pass.stream);
  } else {
    ops::transpose(pass.in(1), pass.out(1), pass.device, pass.stream);
  }
  const ops::Operand y = pass.out(0);
  const Shape weight{pass.in(1).rows, pass.in(1).cols, pass.placement().precision};
  const bool in_one_pass = finishes_ && finishes_cheaply(y);
  // The gradient is that of the plain product.
  ops::SpmmOptions options =
      product_options(weight, weight.precision, pass.context.training && !in_one_pass);
  if (in_one_pass) finish_by_product(pass, finishing_, bias, options, inputs);
  ops::run(x.sparse().spmm(as_given, options), inputs, {y}, pass.stream);
  if (!finishes_ || in_one_pass) return;
  ops::bias_activation_dropout(y, pass.in(bias), finishing_.options(pass), y, pass.device,
                               pass.stream);
}

void SparseLinear::differentiate(Adjoint& adjoint) const {
  const Value gradient = gradient_before(adjoint, finishing_, {}, bias);
  if (!adjoint.wants(1)) return;
  adjoint.give(1, adjoint.program().append(std::make_shared<SparseLinearGradient>(),
                                           {adjoint.in(0), adjoint.in(1), gradient}));
}

void SparseLinearGradient::shape(Shapes& shapes) const {
  const Shape& weight = shapes.in(1);
  shapes.set(0, weight);
  shapes.set(1, {weight.cols, weight.rows, weight.precision});
}

void SparseLinearGradient::run(const Pass& pass) const {
  const Input& x = pass.given(0);
  const ops::Operand written = pass.out(0);
  const auto product_into = [&](ops::Operand transposed) {
    const Shape weight{pass.in(2).cols, x.cols(), pass.placement().precision};
    ops::run_backward(x.sparse().spmm(as_given, product_options(weight, weight.precision, true)),
                      {pass.in(2), {}, x.values(), {}}, {transposed, {}}, pass.stream);
  };
  // An optimiser takes the gradient transposed, as it comes.
  if (Parameter* const own = pass.gradient_of(0); own != nullptr && own->has_optimiser) {
    return product_into(own->turned_gradient());
  }
  product_into(pass.out(1));
  ops::transpose(pass.out(1), written, pass.device, pass.stream);
}

Value linear(Program& program, Value x, Value weight) {
  if (program.info(x).is_sparse) {
    return program.append(std::make_shared<SparseLinear>(), {x, weight, {}});
  }
  return program.append(std::make_shared<Linear>(), {x, weight, {}, {}, {}, {}});
}

}  // namespace tessera::step
