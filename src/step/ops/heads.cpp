// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/heads.hpp"

#include <fmt/format.h>

#include <memory>

#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

/// Scores of every row with one vector, or with each of two. In: x and the vectors.
class HeadDots final : public Op {
 public:
  HeadDots(std::int64_t heads, bool two) : heads_(heads), two_(two) {}

  std::string describe() const override { return fmt::format("head_dots of {}", heads_); }
  std::size_t num_outputs() const override { return two_ ? 2 : 1; }

  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < num_outputs(); ++i) shapes.set(i, shapes.in(0).rows, heads_);
  }

  void run(const Pass& pass) const override {
    if (two_) {
      return ops::head_dots(pass.in(0), pass.in(1), pass.in(2), pass.out(0), pass.out(1),
                            pass.device, pass.stream);
    }
    ops::head_dot(pass.in(0), pass.in(1), pass.out(0), pass.device, pass.stream);
  }

  void differentiate(Adjoint& adjoint) const override;

 private:
  std::int64_t heads_;
  bool two_;
};

/// Adds to the gradient of x, and gives those of the vectors. In: x, the vectors, the gradients of
/// the scores, what x's gradient is so far.
class HeadDotsGradient final : public Op {
 public:
  explicit HeadDotsGradient(bool two) : two_(two) {}

  std::string describe() const override { return "head_dots_gradient"; }
  std::size_t num_outputs() const override { return two_ ? 3 : 2; }
  int updates() const override { return two_ ? 5 : 3; }

  void shape(Shapes& shapes) const override {
    shapes.set(0, shapes.in(0));
    for (std::size_t i = 1; i < num_outputs(); ++i) shapes.set(i, shapes.in(i));
  }

  void run(const Pass& pass) const override {
    if (two_) {
      return ops::head_dots_backward(pass.in(0), pass.in(1), pass.in(2), pass.in(3), pass.in(4),
                                     pass.out(0), pass.out(1), pass.out(2), pass.device,
                                     pass.stream, pass.context.workspace);
    }
    ops::head_dot_backward(pass.in(0), pass.in(1), pass.in(2), pass.out(0), pass.out(1),
                           pass.device, pass.stream, pass.context.workspace);
  }

 private:
  bool two_;
};

void HeadDots::differentiate(Adjoint& adjoint) const {
  Program& program = adjoint.program();
  const auto or_zero = [&](Value gradient, Value like) {
    return gradient.absent() ? fill(program, like, 0) : gradient;
  };
  std::vector<Value> in = {adjoint.in(0), adjoint.in(1)};
  if (two_) in.push_back(adjoint.in(2));
  for (std::size_t i = 0; i < num_outputs(); ++i) {
    in.push_back(or_zero(adjoint.gradient(i), adjoint.out(i)));
  }
  in.push_back(or_zero(adjoint.take(0), adjoint.in(0)));
  const std::vector<Value> found =
      program.append_all(std::make_shared<HeadDotsGradient>(two_), std::move(in));
  if (adjoint.wants(0)) adjoint.give(0, found[0]);
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (adjoint.wants(i)) adjoint.give(i, found[i]);
  }
}

class HeadMeanGradient final : public Op {
 public:
  explicit HeadMeanGradient(std::int64_t heads) : heads_(heads) {}

  std::string describe() const override { return "head_mean_gradient"; }
  void shape(Shapes& shapes) const override {
    shapes.set(0, shapes.in(0).rows, shapes.in(0).cols * heads_);
  }
  void run(const Pass& pass) const override {
    ops::head_mean_backward(pass.in(0), pass.out(0), pass.device, pass.stream);
  }

 private:
  std::int64_t heads_;
};

class HeadMean final : public Op {
 public:
  explicit HeadMean(std::int64_t heads) : heads_(heads) {}

  std::string describe() const override { return fmt::format("head_mean of {}", heads_); }
  void shape(Shapes& shapes) const override {
    shapes.set(0, shapes.in(0).rows, shapes.in(0).cols / heads_);
  }
  void run(const Pass& pass) const override {
    ops::head_mean(pass.in(0), pass.out(0), pass.device, pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    adjoint.give(0, adjoint.program().append(std::make_shared<HeadMeanGradient>(heads_),
                                             {adjoint.gradient()}));
  }
  bool may_repeat() const override { return true; }

 private:
  std::int64_t heads_;
};

}  // namespace

Value head_dot(Program& program, Value x, Value vector, std::int64_t heads) {
  return program.append(std::make_shared<HeadDots>(heads, false), {x, vector});
}

std::pair<Value, Value> head_dots(Program& program, Value x, Value first, Value second,
                                  std::int64_t heads) {
  const auto scores =
      program.append_all(std::make_shared<HeadDots>(heads, true), {x, first, second});
  return {scores[0], scores[1]};
}

Value head_mean(Program& program, Value x, std::int64_t heads) {
  if (heads == 1) return x;
  return program.append(std::make_shared<HeadMean>(heads), {x});
}

}  // namespace tessera::step
