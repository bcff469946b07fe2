// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "tessera/ops/activation.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

constexpr double shortest = 1e-12;  // rows below that length are taken for that long

/// In: the gradient, and x.
class UnitRowsGradient final : public Op {
 public:
  std::string describe() const override { return "unit_rows_gradient"; }
  int replaces() const override { return 0; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const Pass& pass) const override {
    ops::row_normalise_backward(pass.in(1), pass.in(0), pass.out(0), shortest, pass.device,
                                pass.stream);
  }
};

class UnitRows final : public Op {
 public:
  std::string describe() const override { return "unit_rows"; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const Pass& pass) const override {
    ops::row_normalise(pass.in(0), pass.out(0), shortest, pass.device, pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    adjoint.give(0, adjoint.program().append(std::make_shared<UnitRowsGradient>(),
                                             {adjoint.gradient(), adjoint.in(0)}));
  }
  bool may_repeat() const override { return true; }
};

}  // namespace

Value unit_rows(Program& program, Value x) {
  return program.append(std::make_shared<UnitRows>(), {x});
}

}  // namespace tessera::step
