// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

/// Nothing is computed where plans alone are made.
void call(const std::function<void(const Pass&)>& function, const Pass& pass) {
  if (!ops::plans_only()) function(pass);
}

/// In: the gradient of the result, the result, and what the op reads. Out: the gradients of that.
class CustomGradient final : public Op {
 public:
  CustomGradient(CustomOp op, std::size_t num_in) : op_(std::move(op)), num_in_(num_in) {}

  std::string describe() const override { return op_.name + "_gradient"; }
  std::size_t num_outputs() const override { return num_in_; }
  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < num_in_; ++i) shapes.set(i, shapes.in(i + 2));
  }
  void run(const Pass& pass) const override { call(op_.backward, pass); }

 private:
  CustomOp op_;
  std::size_t num_in_;
};

class Custom final : public Op {
 public:
  Custom(CustomOp op, std::size_t num_in) : op_(std::move(op)), num_in_(num_in) {}

  std::string describe() const override { return op_.name; }
  void shape(Shapes& shapes) const override {
    if (op_.shape) return op_.shape(shapes);
    shapes.set(0, shapes.in(0));
  }
  void run(const Pass& pass) const override { call(op_.forward, pass); }
  void differentiate(Adjoint& adjoint) const override {
    if (!op_.backward) return Op::differentiate(adjoint);
    std::vector<Value> in = {adjoint.gradient(), adjoint.out(0)};
    for (std::size_t i = 0; i < num_in_; ++i) in.push_back(adjoint.in(i));
    const std::vector<Value> gradients =
        adjoint.program().append_all(std::make_shared<CustomGradient>(op_, num_in_), std::move(in));
    for (std::size_t i = 0; i < num_in_; ++i) {
      if (adjoint.wants(i)) adjoint.give(i, gradients[i]);
    }
  }

 private:
  CustomOp op_;
  std::size_t num_in_;
};

}  // namespace

Value custom(Program& program, CustomOp op, std::vector<Value> in) {
  const std::size_t num_in = in.size();
  return program.append(std::make_shared<Custom>(std::move(op), num_in), std::move(in));
}

}  // namespace tessera::step
