// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "step/ops/finish.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = finish(A x + residual + bias). In: x, the bias and the residual; the latter two may be
/// absent. For max and min the second output holds the winning sources.
class Aggregate final : public Op {
 public:
  explicit Aggregate(const Aggregation& aggregation) : aggregation_(aggregation) {}
  /// The same with what follows, in one kernel.
  Aggregate(const Aggregate& plain, const Finishing& finishing) : Aggregate(plain) {
    finishing_ = finishing;
    finishes_ = true;
  }

  std::string describe() const override;
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;

  const Aggregation& aggregation() const noexcept { return aggregation_; }
  bool finishes() const noexcept { return finishes_; }

 private:
  Aggregation aggregation_;
  Finishing finishing_ = {};
  bool finishes_ = false;
  bool has_gradient_ = false;  ///< plans are made for both directions
};

/// Throws where a matrix has not a row for each source.
void require_rows(const Shape& x, Topology& graph);

/// y = A x and dx = A^T dy, for ops that have these sums as a part. `backward`: plans are made for
/// both directions.
void sum_neighbours(const Pass& pass, const Aggregation& aggregation, ops::ConstOperand x,
                    ops::Operand y, bool backward);
void sum_neighbours_backward(const Pass& pass, const Aggregation& aggregation,
                             ops::ConstOperand grad_y, ops::Operand grad_x,
                             MatrixView<const VertexId> winners = {});

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
