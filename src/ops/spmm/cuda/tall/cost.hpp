// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/spmm/cuda/tall/policy.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What the cost model expects a run on tall windows to take, from a sample of the windows.
double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy,
                       const DeviceTraits& traits);

}  // namespace tessera::ops
