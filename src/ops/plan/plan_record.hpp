// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ops/plan/decision.hpp"
#include "ops/plan/workspace.hpp"
#include "tessera/ops/plan.hpp"

namespace tessera::ops {

/// What all plans keep. Each op adds its own to it in a record derived from this one.
struct PlanRecord {
  virtual ~PlanRecord() = default;
  virtual std::int64_t workspace_bytes() const noexcept = 0;

  /// Takes over which kernel was chosen and why; returns what was prepared of it.
  template <class Choice>
  auto take(Choice&& choice) {
    kernel = &choice.kernel->info;
    decision = std::move(choice.decision);
    return std::move(choice.prepared);
  }

  Graph graph;
  const KernelInfo* kernel = nullptr;
  Decision decision;
  bool has_backward = false;
};

/// The record of an op whose kernels have both passes, or are chosen for one each.
template <class OptionsType, class Prepared>
struct KernelRecord : PlanRecord {
  std::int64_t workspace_bytes() const noexcept override {
    std::int64_t own = 0;
    if constexpr (requires { forward->own_bytes(); }) {
      own = forward->own_bytes() + (backward == nullptr ? 0 : backward->own_bytes());
    }
    return workspace->bytes() + own;
  }

  OptionsType options;
  std::unique_ptr<const Prepared> forward;  ///< has both passes where `backward` is null
  std::unique_ptr<const Prepared> backward;
  std::optional<PlanWorkspace> workspace;  ///< the last member that owns memory: see there
};

/// The way from the public handle to what the library keeps.
struct PlanAccess {
  template <class Record>
  static auto make(std::shared_ptr<const Record> record) {
    using Options = decltype(record->options);
    const Options& options = record->options;
    return Plan<Options>(std::move(record), options);
  }

  /// The same of a record that has yet to get the workspace of its runs.
  template <class Record>
  static auto finish(std::shared_ptr<Record> record, const WorkspaceNeed& need) {
    const auto& options = record->options;
    record->workspace.emplace(need, options.place(), options.own_workspace);
    return make(std::shared_ptr<const Record>(std::move(record)));
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
