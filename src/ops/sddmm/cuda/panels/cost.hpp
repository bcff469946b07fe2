// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/sddmm/cuda/panels/policy.hpp"
#include "ops/sddmm/kernel.hpp"

namespace tessera::ops {

/// What dot products by panels should take.
double predict_panels_us(const SddmmProblem& problem, const PanelPolicy& policy,
                         const DeviceTraits& traits);

}  // namespace tessera::ops
