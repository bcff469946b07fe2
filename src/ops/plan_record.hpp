// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ops/decision.hpp"
#include "tessera/ops/plan.hpp"

namespace tessera::ops {

/// What all plans keep. Each op adds its own to it in a record derived from this one.
struct PlanRecord {
  virtual ~PlanRecord() = default;
  virtual std::int64_t workspace_bytes() const noexcept = 0;

  Graph graph;
  const KernelInfo* kernel = nullptr;
  Decision decision;
  bool has_backward = false;
};

/// The way from the public handle to what the library keeps.
struct PlanAccess {
  template <class Record>
  static auto make(std::shared_ptr<const Record> record) {
    using Options = decltype(record->options);
    const Options& options = record->options;
    return Plan<Options>(std::move(record), options);
  }

  /// Throws `invalid_argument` for an empty plan.
  template <class Record, class Options>
  static const Record& record(const Plan<Options>& plan) {
    return static_cast<const Record&>(plan.record());
  }
};

/// Throws `invalid_argument` unless the plan was made with its backward pass.
void require_backward(const AnyPlan& plan);

/// For a backward pass that has no kernel of its own.
Decision by_same_kernel(const PlanRecord& record);

}  // namespace tessera::ops
