// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "step/ops/finish.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = finish(Z W^T + x R^T + bias) with Z = A x, or A x + (1 + scale) x: by one kernel where the
/// costs are in favour of it for the bound graph, else in stages. In: x, W, R, the bias and the
/// scale; all but x and W may be absent. The scratch behind y holds Z, which the gradient reads.
class AggregateUpdate final : public Op {
 public:
  explicit AggregateUpdate(const Aggregation& aggregation) : aggregation_(aggregation) {}

  /// The same with what follows.
  AggregateUpdate(const AggregateUpdate& plain, const Finishing& finishing)
      : AggregateUpdate(plain) {
    finishing_ = finishing;
    finishes_ = true;
  }

  std::string describe() const override;
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;

  int adds_last() const override { return finishing_.is_linear() ? static_cast<int>(bias) : -1; }

  bool finishes() const noexcept { return finishes_; }

  static constexpr std::size_t x = 0, weight = 1, root = 2, bias = 3, scale = 4;
  static constexpr std::size_t num_in = 5;

 private:
  friend class AggregateUpdateGradient;

  /// Empty where stages are expected to be faster. `Node`: `Shapes` or `Pass`, of one with the same
  /// first inputs.
  template <class Node>
  ops::AggregateUpdatePlan plan(const Node& node, std::int64_t in, std::int64_t out) const;
  void run_stages(const Pass& pass) const;

  Aggregation aggregation_;
  Finishing finishing_ = {};
  bool finishes_ = false;
  bool has_gradient_ = false, to_input_ = false;
};

/// In: what forward reads, Z, and the gradient before the finishing. Out: the gradients of what
/// forward reads, of the bias where nothing but it is added; scratch: that of Z.
class AggregateUpdateGradient final : public Op {
 public:
  AggregateUpdateGradient(const AggregateUpdate& forward, bool sums)
      : forward_(forward), sums_(sums) {}

  std::string describe() const override { return "aggregate_update_gradient"; }
  std::size_t num_outputs() const override { return AggregateUpdate::num_in; }
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;

 private:
  AggregateUpdate forward_;
  bool sums_;  ///< gives the bias its gradient
};

}  // namespace tessera::step
