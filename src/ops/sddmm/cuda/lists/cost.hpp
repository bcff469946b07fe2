// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/sddmm/cuda/lists/policy.hpp"
#include "ops/sddmm/kernel.hpp"

namespace tessera::ops {

/// What dot products by a list should take.
double predict_list_us(const SddmmProblem& problem, const ListPolicy& policy,
                       const DeviceTraits& traits);

}  // namespace tessera::ops
