// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/aggregate_update/kernel.hpp"
#include "ops/windows/policy.hpp"

namespace tessera::ops {

/// The windows alone. The term of the target's own features comes when one is complete.
SpmmProblem window_sums(const AggregateUpdateProblem& problem);

/// Whether the target's own features may come as a column of its window instead, where the pattern
/// with self loops has the same sums. Where windows have too few columns for most rows to be among
/// them, these would be most of the work.
bool rows_may_be_columns(const AggregateUpdateProblem& problem);

/// What windows that are multiplied by weights should take on a GPU.
double predicted_window_update_us(const AggregateUpdateProblem& problem, const TallPolicy& policy,
                                  const DeviceTraits& traits);

}  // namespace tessera::ops
