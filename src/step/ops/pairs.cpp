// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "tessera/core/error.hpp"
#include "tessera/ops/pairs.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

const ops::PairEnds& ends_of(const Pass& pass) {
  if (pass.context.pair_ends != nullptr) return *pass.context.pair_ends;
  throw Error(ErrorCode::invalid_argument, "the ends of the pairs are not listed", "step",
              "set Context::pair_ends for gradients");
}

/// In: the rows, and the gradient of the scores. Out: the gradient of the rows.
class PairDotGradient final : public Op {
 public:
  std::string describe() const override { return "pair_dot_gradient"; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const Pass& pass) const override {
    const ops::Operand gradient = pass.out(0);
    ops::pair_dot_backward(pass.in(0), pass.in(0), ends_of(pass), pass.in(1), gradient, gradient,
                           pass.stream, pass.context.workspace);
  }
};

class PairDot final : public Op {
 public:
  explicit PairDot(std::int64_t heads) : heads_(heads) {}

  std::string describe() const override { return fmt::format("pair_dot, {} heads", heads_); }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.num_pairs(), heads_); }
  void run(const Pass& pass) const override {
    ops::pair_dot(pass.in(0), pass.in(0), pass.context.pairs, pass.out(0), pass.device,
                  pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    adjoint.give(0, adjoint.program().append(std::make_shared<PairDotGradient>(),
                                             {adjoint.in(0), adjoint.gradient()}));
  }
  bool may_repeat() const override { return true; }

 private:
  std::int64_t heads_;
};

/// In: both matrices, for their shapes, and the gradient of the sums. Out: both gradients.
class PairSumGradient final : public Op {
 public:
  std::string describe() const override { return "pair_sum_gradient"; }
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < 2; ++i) shapes.set(i, shapes.in(i));
  }
  void run(const Pass& pass) const override {
    ops::pair_sum_backward(ends_of(pass), pass.in(2), pass.out(0), pass.out(1), pass.stream,
                           pass.context.workspace);
  }
  bool reads(std::size_t input) const override { return input == 2; }
};

class PairSum final : public Op {
 public:
  std::string describe() const override { return "pair_sum"; }
  void shape(Shapes& shapes) const override {
    shapes.set(0, shapes.num_pairs(), shapes.in(0).cols);
  }
  void run(const Pass& pass) const override {
    ops::pair_sum(pass.in(0), pass.in(1), pass.context.pairs, pass.out(0), pass.device,
                  pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    const std::vector<Value> gradients = adjoint.program().append_all(
        std::make_shared<PairSumGradient>(), {adjoint.in(0), adjoint.in(1), adjoint.gradient()});
    for (std::size_t i = 0; i < 2; ++i) {
      if (adjoint.wants(i)) adjoint.give(i, gradients[i]);
    }
  }
  bool may_repeat() const override { return true; }
};

}  // namespace

Value pair_dot(Program& program, Value x, std::int64_t heads) {
  return program.append(std::make_shared<PairDot>(heads), {x});
}

Value pair_sum(Program& program, Value of_sources, Value of_targets) {
  return program.append(std::make_shared<PairSum>(), {of_sources, of_targets});
}

}  // namespace tessera::step
