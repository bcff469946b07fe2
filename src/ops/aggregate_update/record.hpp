// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "ops/aggregate_update/kernel.hpp"
#include "ops/plan_record.hpp"
#include "ops/workspace.hpp"

namespace tessera::ops {

/// What a plan of aggregate_update keeps.
struct AggregateUpdateRecord final : PlanRecord {
  std::int64_t workspace_bytes() const noexcept override {
    const std::int64_t of_backward = grad_x == nullptr ? 0 : grad_x->own_bytes();
    return workspace->bytes() + forward->own_bytes() + of_backward;
  }

  AggregateUpdateOptions options;
  std::unique_ptr<const PreparedAggregateUpdate> forward;
  std::unique_ptr<const PreparedAggregateUpdate> grad_x;  ///< null without a backward pass
  std::optional<PlanWorkspace> workspace;                 ///< the last member: see there
};

}  // namespace tessera::ops
