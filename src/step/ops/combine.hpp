// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = alpha x, or alpha x + beta y.
class Combine final : public Op {
 public:
  Combine(double alpha, double beta) : alpha_(alpha), beta_(beta) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  bool may_repeat() const override { return true; }
  int updates() const override { return 1; }

  double alpha() const noexcept { return alpha_; }
  double beta() const noexcept { return beta_; }
  /// Whether it is x + y.
  bool is_sum() const noexcept { return alpha_ == 1 && beta_ == 1; }

 private:
  double alpha_, beta_;
};

/// y = alpha x.
class Scale final : public Op {
 public:
  explicit Scale(double alpha) : alpha_(alpha) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  bool may_repeat() const override { return true; }

  double alpha() const noexcept { return alpha_; }

 private:
  double alpha_;
};

/// A matrix of the shape of another one, of which every element is a constant.
class Fill final : public Op {
 public:
  explicit Fill(double value) : value_(value) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  bool may_repeat() const override { return true; }
  void differentiate(Adjoint&) const override {}

 private:
  double value_;
};

}  // namespace tessera::step
