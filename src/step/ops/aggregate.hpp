// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "step/ops/finish.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = finish(A x + bias). In: x, and the bias, which may be absent. For max and min the second
/// output holds the winning sources.
class Aggregate final : public Op {
 public:
  explicit Aggregate(const Aggregation& aggregation) : aggregation_(aggregation) {}
  /// The same with what follows, in one kernel.
  Aggregate(const Aggregate& plain, const Finishing& finishing, bool bias)
      : aggregation_(plain.aggregation_), finishing_(finishing), bias_(bias), finishes_(true) {}

  std::string describe() const override;
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;

  bool finishes() const noexcept { return finishes_; }

 private:
  Aggregation aggregation_;
  Finishing finishing_ = {};
  bool bias_ = false, finishes_ = false;
  bool has_gradient_ = false;  ///< plans are made for both directions
};

/// dx = A^T dy. In: dy, and the winners where there are any.
class AggregateGradient final : public Op {
 public:
  explicit AggregateGradient(const Aggregation& aggregation) : aggregation_(aggregation) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;

 private:
  Aggregation aggregation_;
};

}  // namespace tessera::step
