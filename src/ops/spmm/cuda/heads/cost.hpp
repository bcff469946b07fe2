// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What sums with a weight per edge and head, or of features of edges, should take.
double predict_heads_us(const SpmmProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
