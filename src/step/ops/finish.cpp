// SPDX-License-Identifier: Apache-2.0
#include "step/ops/finish.hpp"

#include <fmt/format.h>

#include <memory>

namespace tessera::step {

bool Finishing::shows_derivative() const noexcept {
  if (kind.activation == ops::Activation::elu) return false;
  return kind.activation != ops::Activation::leaky_relu || kind.slope > 0;
}

ops::ActivationOptions Finishing::options(const Pass& pass) const {
  ops::ActivationOptions options;
  options.activation = kind.activation;
  options.slope = kind.slope;
  options.alpha = kind.alpha;
  options.dropout = dropout;
  options.random = pass.context.random(number);
  options.clock = pass.context.clock;
  return options;
}

std::string Finishing::describe() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (kind.activation != ops::Activation::none) add(to_string(kind.activation));
  if (dropout > 0) add(fmt::format("dropout {}", dropout));
  return text.empty() ? "bias" : text;
}

void Finish::shape(Shapes& shapes) const { shapes.set(0, shapes.in(0)); }

void Finish::run(const Pass& pass) const {
  ops::bias_activation_dropout(pass.in(0), pass.in(1), finishing_.options(pass), pass.out(0),
                               pass.device, pass.stream);
}

void Finish::differentiate(Adjoint& adjoint) const {
  const Value gradient = gradient_before(
      adjoint, finishing_, finishing_.shows_derivative() ? Value() : adjoint.in(0), 1);
  if (adjoint.wants(0)) adjoint.give(0, gradient);
}

std::string FinishGradient::describe() const { return "gradient of " + finishing_.describe(); }

void FinishGradient::shape(Shapes& shapes) const {
  const Shape& result = shapes.in(from);
  const Precision precision = shapes.in(shapes.has(gradient) ? gradient : left).precision;
  shapes.set(before, {result.rows, result.cols, precision});
  shapes.set(grad_bias, {1, result.cols, precision});
}

void FinishGradient::run(const Pass& pass) const {
  ops::bias_activation_dropout_backward(pass.in(from), pass.in(bias), finishing_.options(pass),
                                        pass.in(gradient), pass.out(before), pass.out(grad_bias),
                                        pass.device, pass.stream, pass.context.workspace,
                                        {pass.in(left), pass.in(right)});
}

void ColumnSums::shape(Shapes& shapes) const {
  shapes.set(0, {1, shapes.in(0).cols, shapes.in(0).precision});
}

void ColumnSums::run(const Pass& pass) const {
  const ops::Operand sums = pass.out(0);
  if (sums.absent()) return;
  ops::bias_activation_dropout_backward(pass.in(0), {}, {}, pass.in(0), {}, sums, pass.device,
                                        pass.stream, pass.context.workspace);
}

// The fastest kernels finish rows only where these fill whole vectors. But a small product is done
// in about the time that a pass of its own takes to begin.
bool finishes_cheaply(const ops::ConstOperand& y) {
  constexpr std::int64_t small = std::int64_t{1} << 20;
  const std::int64_t row_bytes = bytes_of(y.type, y.cols);
  return row_bytes % 16 == 0 || y.rows * row_bytes <= small;
}

void finish_by_product(const Pass& pass, const Finishing& finishing, std::size_t bias,
                       ops::SpmmOptions& options, ops::SpmmInputs& inputs) {
  options.epilogue.bias = pass.has(bias);
  options.epilogue.activation = finishing.kind.activation;
  options.epilogue.slope = finishing.kind.slope;
  options.epilogue.alpha = finishing.kind.alpha;
  options.epilogue.dropout = finishing.dropout;
  inputs.bias = pass.in(bias);
  inputs.random = pass.context.random(finishing.number);
  inputs.clock = pass.context.clock;
}

Value gradient_before(Adjoint& adjoint, const Finishing& finishing, Value x, std::size_t bias) {
  Program& program = adjoint.program();
  const Value gradient = adjoint.gradient();
  const bool to_bias = adjoint.wants(bias);
  if (finishing.is_linear()) {
    if (to_bias) adjoint.give(bias, program.append(std::make_shared<ColumnSums>(), {gradient}));
    return gradient;
  }
  const Value from = x.absent() ? adjoint.out(0) : x;
  const Value added = x.absent() || !adjoint.has(bias) ? Value() : adjoint.in(bias);
  const std::vector<Value> found = program.append_all(std::make_shared<FinishGradient>(finishing),
                                                      {gradient, from, added, {}, {}});
  if (to_bias) adjoint.give(bias, found[1]);
  return found[0];
}

Value add_bias(Program& program, Value x, Value bias) {
  return program.append(std::make_shared<Finish>(Finishing{}), {x, bias});
}

Value activate(Program& program, Value x, const ActivationKind& kind) {
  if (kind.activation == ops::Activation::none) return x;
  return program.append(std::make_shared<Finish>(Finishing{.kind = kind}), {x, {}});
}

Value dropout(Program& program, Value x, double share, std::uint32_t number) {
  if (share == 0) return x;
  return program.append(std::make_shared<Finish>(Finishing{.dropout = share, .number = number}),
                        {x, {}});
}

}  // namespace tessera::step
