// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tessera/graph/graph.hpp"
#include "tessera/ops/kernels.hpp"

/// What a plan of any op is: a handle on something immutable that holds the graph, the chosen
/// kernels and their schedules. Copies share it. Every op has
///
///     plan_<op>(graph, options)        options.backward: whether run_backward will be called
///     run(plan, ...)
///     run_backward(plan, ...)
///
/// A plan that is empty (made by default, or moved from) is an `invalid_argument` error wherever it
/// is used.
namespace tessera::ops {

/// What the library keeps of a plan.
struct PlanRecord;
struct PlanAccess;

/// What every plan says of itself.
class AnyPlan {
 public:
  AnyPlan() = default;

  bool empty() const noexcept { return record_ == nullptr; }
  const Graph& graph() const;
  /// The kernel of the forward pass. Others that the plan needs are children of `explain()`.
  const KernelInfo& kernel() const;
  bool has_backward() const;
  /// What a run of any of its passes needs besides its operands.
  std::int64_t workspace_bytes() const;
  Explanation explain() const;

 protected:
  explicit AnyPlan(std::shared_ptr<const PlanRecord> record) : record_(std::move(record)) {}
  const PlanRecord& record() const;

 private:
  std::shared_ptr<const PlanRecord> record_;
};

/// The plan of an op with such options.
template <class OptionsType>
class Plan : public AnyPlan {
 public:
  using Options = OptionsType;

  Plan() = default;

  const Options& options() const {
    record();
    return *options_;
  }

 private:
  friend struct PlanAccess;
  Plan(std::shared_ptr<const PlanRecord> record, const Options& options)
      : AnyPlan(std::move(record)), options_(&options) {}

  const Options* options_ = nullptr;  ///< of the record
};

}  // namespace tessera::ops
