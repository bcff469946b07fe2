// SPDX-License-Identifier: Apache-2.0
#include "step/ops/combine.hpp"

#include <fmt/format.h>

#include <memory>

#include "tessera/ops/elementwise.hpp"
#include "tessera/step/nodes.hpp"

namespace tessera::step {
namespace {

/// A row of zeros for each row of a graph.
class Zeros final : public Op {
 public:
  Zeros(int graph, std::int64_t cols) : graph_(graph), cols_(cols) {}

  std::string describe() const override { return "zeros"; }
  void shape(Shapes& shapes) const override {
    shapes.set(0, shapes.graph(graph_).num_rows(), cols_);
  }
  void run(const Pass& pass) const override { ops::fill(pass.out(0), 0, pass.device, pass.stream); }
  void differentiate(Adjoint&) const override {}

 private:
  int graph_;
  std::int64_t cols_;
};

}  // namespace

std::string Combine::describe() const { return fmt::format("add {} a + {} b", alpha_, beta_); }

void Combine::shape(Shapes& shapes) const { shapes.set(0, shapes.in(1)); }

void Combine::run(const Pass& pass) const {
  ops::add_scaled(alpha_, pass.in(0), beta_, pass.out(0), pass.device, pass.stream);
}

void Combine::differentiate(Adjoint& adjoint) const {
  const double factors[] = {alpha_, beta_};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!adjoint.wants(i)) continue;
    adjoint.give(i, factors[i] == 1 ? adjoint.gradient()
                                    : scaled(adjoint.program(), factors[i], adjoint.gradient()));
  }
}

std::string Scale::describe() const { return fmt::format("scale {}", alpha_); }

void Scale::shape(Shapes& shapes) const { shapes.set(0, shapes.in(0)); }

void Scale::run(const Pass& pass) const {
  ops::add_scaled(alpha_, pass.in(0), 0, pass.out(0), pass.device, pass.stream);
}

void Scale::differentiate(Adjoint& adjoint) const {
  adjoint.give(0, scaled(adjoint.program(), alpha_, adjoint.gradient()));
}

std::string Fill::describe() const { return fmt::format("fill {}", value_); }

void Fill::shape(Shapes& shapes) const { shapes.set(0, shapes.in(0)); }

void Fill::run(const Pass& pass) const {
  const ops::Operand y = pass.out(0);
  if (!y.absent()) ops::fill(y, value_, pass.device, pass.stream);
}

Value add(Program& program, Value a, Value b) { return combine(program, 1, a, 1, b); }

Value combine(Program& program, double alpha, Value a, double beta, Value b) {
  return program.append(std::make_shared<Combine>(alpha, beta), {a, b});
}

Value scaled(Program& program, double alpha, Value x) {
  return program.append(std::make_shared<Scale>(alpha), {x});
}

Value zeros(Program& program, int graph, std::int64_t cols) {
  return program.append(std::make_shared<Zeros>(program.absolute_graph(graph), cols), {});
}

Value fill(Program& program, Value like, double value) {
  return program.append(std::make_shared<Fill>(value), {like});
}

}  // namespace tessera::step
