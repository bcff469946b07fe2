// SPDX-License-Identifier: Apache-2.0
#include "step/ops/batch_norm.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "step/ops/numbers.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/batch_norm.hpp"

namespace tessera::step {
namespace {

/// Numbers for each column: so many for forward, and for its gradient.
constexpr std::int64_t numbers_of_columns = 4, numbers_of_gradient = 8;
constexpr std::size_t unread_gradient = 5;  // the scratch of a gradient of x that nothing reads
constexpr std::int64_t num_sums = 2;

Shape columns_shape(const Shapes& shapes, std::int64_t width, std::int64_t numbers) {
  return numbers_shape(width, numbers, shapes.placement().wide().precision);
}

}  // namespace

std::string BatchNorm::describe() const {
  const bool is_alone = finishing_.is_linear();
  return is_alone ? "batch_norm" : "batch_norm " + finishing_.describe();
}

bool BatchNorm::fits_columns() const noexcept {
  const ops::Activation activation = finishing_.kind.activation;
  return finishing_.dropout == 0 &&
         (activation == ops::Activation::none || activation == ops::Activation::relu);
}

void BatchNorm::shape(Shapes& shapes) const {
  const Shape& rows = shapes.in(x);
  const Precision wide = shapes.placement().wide().precision;
  shapes.set(y, rows);
  shapes.set(columns, columns_shape(shapes, rows.cols, numbers_of_columns));
  shapes.set(mean, {1, rows.cols, wide});
  shapes.set(inverse_deviation, {1, rows.cols, wide});
}

void BatchNorm::run(const Pass& pass) const {
  ops::BatchNormNeighbours neighbours;
  neighbours.moments = numbers_in(pass.in(moments), 3);
  neighbours.columns = numbers_in(pass.out(columns), pass.in(x).cols);
  // One who reads x in the place of y does what follows, too.
  const bool is_left = !neighbours.columns.absent();
  ops::batch_norm(
      pass.in(x), pass.in(gamma), pass.in(beta), {kind_.epsilon, kind_.momentum, kind_.training},
      {pass.state(running_mean), pass.state(running_variance)}, pass.out(y), pass.out(mean),
      pass.out(inverse_deviation), pass.device, pass.stream, pass.context.workspace,
      is_left ? ops::ActivationOptions{} : finishing_.options(pass), pass.in(shift), neighbours,
      pass.chain);
}

void BatchNorm::differentiate(Adjoint& adjoint) const {
  if (!kind_.training) {
    throw Error(ErrorCode::unsupported, "batch norm has a gradient in training only", "BatchNorm",
                "set Context::training");
  }
  using Gradient = BatchNormGradient;
  std::vector<Value> in(Gradient::num_in);
  in[Gradient::x] = adjoint.in(x);
  in[Gradient::gamma] = adjoint.in(gamma);
  in[Gradient::beta] = adjoint.in(beta);
  in[Gradient::mean] = adjoint.out(mean);
  in[Gradient::inverse_deviation] = adjoint.out(inverse_deviation);
  in[Gradient::gradient] = adjoint.gradient();
  const std::vector<Value> found = adjoint.program().append_all(
      std::make_shared<Gradient>(*this, adjoint.wants(x)), std::move(in));
  constexpr std::pair<std::size_t, std::size_t> given[] = {{x, Gradient::grad_x},
                                                           {gamma, Gradient::grad_gamma},
                                                           {beta, Gradient::grad_beta},
                                                           {shift, Gradient::grad_shift}};
  for (const auto& [input, gradient] : given) {
    if (adjoint.wants(input)) adjoint.give(input, found[gradient]);
  }
}

void BatchNormGradient::shape(Shapes& shapes) const {
  const Shape& rows = shapes.in(x);
  const Precision wide = shapes.placement().wide().precision;
  shapes.set(grad_x, rows);
  shapes.set(grad_gamma, {1, rows.cols, wide});
  shapes.set(grad_beta, {1, rows.cols, wide});
  shapes.set(grad_shift, {1, rows.cols, rows.precision});
  shapes.set(grad_columns, columns_shape(shapes, rows.cols, numbers_of_gradient));
  shapes.set(unread_gradient, reaches_x_ ? Shape{} : rows);
}

void BatchNormGradient::run(const Pass& pass) const {
  ops::BatchNormSurroundings around;
  around.factors = {pass.in(left), pass.in(right)};
  around.activation = forward_.finishing().options(pass);
  around.beta = pass.in(beta);
  around.grad_shift = pass.out(grad_shift);
  around.grad_columns = numbers_in(pass.out(grad_columns), pass.in(x).cols);
  around.sums = numbers_in(pass.in(sums), num_sums);
  ops::batch_norm_backward(pass.in(x), pass.in(gamma), pass.in(mean), pass.in(inverse_deviation),
                           pass.in(gradient), pass.out(reaches_x_ ? grad_x : unread_gradient),
                           pass.out(grad_gamma), pass.out(grad_beta), pass.device, pass.stream,
                           pass.context.workspace, around, pass.chain);
}

Value batch_norm(Program& program, Value x, const BatchNormValues& values,
                 const BatchNormKind& kind) {
  return program.append(
      std::make_shared<BatchNorm>(kind),
      {x, values.gamma, values.beta, values.running_mean, values.running_variance, {}, {}});
}

}  // namespace tessera::step
