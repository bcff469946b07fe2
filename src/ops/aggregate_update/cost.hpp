// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/aggregate_update/kernel.hpp"

namespace tessera::ops {

/// What the dense products of a staged run should take, on the problem's device, and the pass over
/// Y where they leave an activation to one.
double predicted_products_us(const AggregateUpdateProblem& problem);
/// The same on a GPU that need not be there.
double predicted_products_us(const AggregateUpdateProblem& problem, const DeviceTraits& traits);

/// What the fused kernel should take, from the sizes of the graph and the degrees of its rows.
double predicted_fused_update_us(const AggregateUpdateProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
