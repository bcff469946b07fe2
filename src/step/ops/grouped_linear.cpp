// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/grouped_linear.hpp"

#include <fmt/format.h>

#include <memory>

#include "tessera/core/error.hpp"
#include "tessera/step/op.hpp"
#include "tessera/step/relation_nodes.hpp"

namespace tessera::step {
namespace {

/// In: x, the weights, the gradient of y. Out: the gradients of the former two.
class GroupedLinearGradient final : public Op {
 public:
  explicit GroupedLinearGradient(const Groups& groups) : groups_(groups) {}

  std::string describe() const override { return "grouped_linear_gradient"; }
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < 2; ++i) shapes.set(i, shapes.in(i));
  }
  void run(const Pass& pass) const override {
    ops::grouped_linear_backward(pass.in(0), pass.graph(groups_.graph).graph(), pass.in(1),
                                 groups_.blocks, pass.in(2), pass.out(0), pass.out(1), pass.device,
                                 pass.stream);
  }

 private:
  Groups groups_;
};

/// In: x and the weights.
class GroupedLinear final : public Op {
 public:
  explicit GroupedLinear(const Groups& groups) : groups_(groups) {}

  std::string describe() const override {
    return fmt::format("grouped_linear, {} blocks", groups_.blocks);
  }
  void shape(Shapes& shapes) const override {
    const Shape &x = shapes.in(0), &weights = shapes.in(1);
    const std::int64_t height = x.cols / groups_.blocks;
    if (height == 0 || x.cols % groups_.blocks != 0 || weights.cols % x.cols != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} features do not fit {} blocks of weights of {} numbers", x.cols,
                              groups_.blocks, weights.cols),
                  "grouped_linear", "make widths multiples of the number of blocks");
    }
    shapes.set(0, {x.rows, weights.cols / height, x.precision});
  }
  void run(const Pass& pass) const override {
    ops::grouped_linear(pass.in(0), pass.graph(groups_.graph).graph(), pass.in(1), groups_.blocks,
                        pass.out(0), pass.device, pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    const std::vector<Value> gradients =
        adjoint.program().append_all(std::make_shared<GroupedLinearGradient>(groups_),
                                     {adjoint.in(0), adjoint.in(1), adjoint.gradient()});
    for (std::size_t i = 0; i < 2; ++i) {
      if (adjoint.wants(i)) adjoint.give(i, gradients[i]);
    }
  }
  bool may_repeat() const override { return true; }

 private:
  Groups groups_;
};

}  // namespace

Value grouped_linear(Program& program, Value x, Value weights, const Groups& groups) {
  const Groups absolute{program.absolute_graph(groups.graph), groups.blocks};
  return program.append(std::make_shared<GroupedLinear>(absolute), {x, weights});
}

}  // namespace tessera::step
