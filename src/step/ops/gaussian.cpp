// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/gaussian.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

ops::GaussianDraw draw_of(const Pass& pass, std::uint32_t number) {
  return {pass.context.random(number), pass.context.clock};
}

/// In: the gradient of what was drawn, and x.
class GaussianGradient final : public Op {
 public:
  explicit GaussianGradient(std::uint32_t number) : number_(number) {}

  std::string describe() const override { return "gaussian_gradient"; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(1)); }
  void run(const Pass& pass) const override {
    if (ops::plans_only()) return;
    if (pass.context.loss == nullptr) {
      throw Error(ErrorCode::invalid_argument, "a divergence has no loss that it adds to", "step",
                  "set the loss of the context");
    }
    const ops::ConstOperand x = pass.in(1);
    const double weight = x.rows > 0 ? 1 / static_cast<double>(x.rows) : 0;
    ops::gaussian_backward(x, draw_of(pass, number_), pass.in(0), weight, pass.out(0),
                           pass.context.loss, pass.device, pass.stream, pass.context.workspace);
  }

 private:
  std::uint32_t number_;
};

class Gaussian final : public Op {
 public:
  explicit Gaussian(std::uint32_t number) : number_(number) {}

  std::string describe() const override { return "gaussian"; }
  void shape(Shapes& shapes) const override {
    const Shape& x = shapes.in(0);
    shapes.set(0, {x.rows, x.cols / 2, x.precision});
  }
  void run(const Pass& pass) const override {
    ops::gaussian(pass.in(0), draw_of(pass, number_), pass.out(0), pass.device, pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    adjoint.give(0, adjoint.program().append(std::make_shared<GaussianGradient>(number_),
                                             {adjoint.gradient(), adjoint.in(0)}));
  }
  bool may_repeat() const override { return true; }

 private:
  std::uint32_t number_;
};

class GaussianMean final : public Op {
 public:
  std::string describe() const override { return "gaussian_mean"; }
  void shape(Shapes& shapes) const override {
    const Shape& x = shapes.in(0);
    shapes.set(0, {x.rows, x.cols / 2, x.precision});
  }
  void run(const Pass& pass) const override {
    ops::gaussian_mean(pass.in(0), pass.out(0), pass.device, pass.stream);
  }
};

}  // namespace

Value gaussian(Program& program, Value x, std::uint32_t number) {
  return program.append(std::make_shared<Gaussian>(number), {x});
}

Value gaussian_mean(Program& program, Value x) {
  return program.append(std::make_shared<GaussianMean>(), {x});
}

}  // namespace tessera::step
