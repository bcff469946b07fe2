// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "step/ops/finish.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = finish(A x + residual + bias), or A x + (1 + scale) residual. In: x, the bias, the residual
/// and its scale; all but x may be absent. For max and min the second output holds the winning
/// sources.
class Aggregate final : public Op {
 public:
  explicit Aggregate(const Aggregation& aggregation) : aggregation_(aggregation) {}
  /// The same with what follows, in one kernel.
  Aggregate(const Aggregate& plain, const Finishing& finishing) : Aggregate(plain) {
    finishing_ = finishing;
    finishes_ = true;
  }
  /// The same of an x that has the column scale of `both` already, which leaves `rows`. The
  /// gradient is that of x before its scale: the row scale of `both` goes to what comes in, and
  /// `columns` is left.
  static std::shared_ptr<const Aggregate> of_scaled(const Aggregate& plain, Derivation rows,
                                                    Derivation columns);

  static constexpr std::size_t x = 0, bias = 1, residual = 2, scale = 3;
  static constexpr std::size_t num_in = 4;

  std::string describe() const override;
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  int adds_last() const override {
    return finishes_ && finishing_.is_linear() ? static_cast<int>(bias) : -1;
  }
  bool may_repeat() const override { return is_sum(); }

  const Aggregation& aggregation() const noexcept { return aggregation_; }
  bool finishes() const noexcept { return finishes_; }
  bool is_sum() const noexcept {
    return aggregation_.reduction == ops::Reduction::sum ||
           aggregation_.reduction == ops::Reduction::mean;
  }

 private:
  Aggregation aggregation_;
  Finishing finishing_ = {};
  bool finishes_ = false;
  bool has_gradient_ = false;  ///< plans are made for both directions
  /// Of a scaled x: what the gradient is summed with, after the row scale of the other.
  Derivation gradient_ = nullptr, both_ = nullptr;
};

/// A residual that is scaled by 1 + a number.
struct OwnRows {
  ops::ConstOperand rows = {};
  ops::ConstOperand scale = {};
};

/// Throws where a matrix has not a row for each source.
void require_rows(const Shape& x, Topology& graph);

/// y = A x + (1 + scale) own and dx = A^T dy + (1 + scale) own, for ops that have these sums as a
/// part. `backward`: plans are made for both directions.
void sum_neighbours(const Pass& pass, const Aggregation& aggregation, ops::ConstOperand x,
                    const OwnRows& own, ops::Operand y, bool backward);
void sum_neighbours_backward(const Pass& pass, const Aggregation& aggregation,
                             ops::ConstOperand grad_y, const OwnRows& own, ops::Operand grad_x,
                             MatrixView<const VertexId> winners = {});

/// dx = A^T dy, + (1 + scale) dy. In: dy, the winners where there are any, and the scale.
class AggregateGradient final : public Op {
 public:
  explicit AggregateGradient(const Aggregation& aggregation) : aggregation_(aggregation) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;

 private:
  Aggregation aggregation_;
};

/// Each row times its number in a scale of what a derivation makes of the graph.
class ScaleRows final : public Op {
 public:
  enum class Side { rows, columns };
  ScaleRows(Derivation derivation, int graph, Side side)
      : derivation_(derivation), graph_(graph), side_(side) {}

  std::string describe() const override { return "scale_rows"; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  /// The gradient goes on as it is: the sum that reads the scaled rows gives that of the rows
  /// before
  /// (`Aggregate::of_scaled`).
  void differentiate(Adjoint& adjoint) const override { adjoint.give(0, adjoint.gradient()); }
  int replaces() const override { return 0; }
  bool may_repeat() const override { return true; }

 private:
  Derivation derivation_;
  int graph_;
  Side side_;
};

/// y = (1 + scale) x. In: x and the scale.
class ScaleByNumber final : public Op {
 public:
  std::string describe() const override { return "scale by 1 + a number"; }
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const Pass& pass) const override;
};

/// The sum over all elements of x * y, 1 x 1.
class Dot final : public Op {
 public:
  std::string describe() const override { return "dot"; }
  void shape(Shapes& shapes) const override { shapes.set(0, {1, 1, shapes.in(0).precision}); }
  void run(const Pass& pass) const override;
};

/// The first rows of x, as many as the graph has.
class FirstRows final : public Op {
 public:
  explicit FirstRows(int graph) : graph_(graph) {}

  std::string describe() const override { return "first_rows"; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  bool may_repeat() const override { return true; }

 private:
  int graph_;
};

}  // namespace tessera::step
