// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/aggregate_update/kernel.hpp"

namespace tessera::ops {

/// What windows that are multiplied by weights should take on a GPU; `sums` are the windows alone.
double predicted_window_update_us(const AggregateUpdateProblem& problem, const SpmmProblem& sums,
                                  const DeviceTraits& traits);

}  // namespace tessera::ops
