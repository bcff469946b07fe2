// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "tessera/ops/elementwise.hpp"
#include "tessera/step/op.hpp"
#include "tessera/step/relation_nodes.hpp"

namespace tessera::step {
namespace {

/// In: x, and the gradient of the result, which becomes that of x.
class PenaltyGradient final : public Op {
 public:
  explicit PenaltyGradient(double factor) : factor_(factor) {}

  std::string describe() const override { return "penalty_gradient"; }
  int updates() const override { return 1; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(1)); }
  void run(const Pass& pass) const override {
    const ops::ConstOperand x = pass.in(0);
    if (x.rows == 0 || x.cols == 0) return;
    const double slope = 2 * factor_ / (static_cast<double>(x.rows) * static_cast<double>(x.cols));
    ops::add_scaled(slope, x, 1, pass.out(0), pass.device, pass.stream);
  }

 private:
  double factor_;
};

class Penalised final : public Op {
 public:
  explicit Penalised(double factor) : factor_(factor) {}

  std::string describe() const override { return fmt::format("penalised by {}", factor_); }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const Pass& pass) const override {
    ops::add_scaled(1, pass.in(0), 0, pass.out(0), pass.device, pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    adjoint.give(0, adjoint.program().append(std::make_shared<PenaltyGradient>(factor_),
                                             {adjoint.in(0), adjoint.gradient()}));
  }

 private:
  double factor_;
};

}  // namespace

Value penalised(Program& program, Value x, double factor) {
  return factor == 0 ? x : program.append(std::make_shared<Penalised>(factor), {x});
}

}  // namespace tessera::step
