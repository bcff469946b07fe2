// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/sddmm/kernel.hpp"

namespace tessera::ops {

/// Steps of a run, at most: so few that every warp has some runs.
int dot_run_steps(const SddmmProblem& problem, const DeviceTraits& traits);

/// What windows of 16 rows should take, from a sample of them; `direct`: with results stored one by
/// one.
double predict_short_dots_us(const SddmmProblem& problem, bool direct, const DeviceTraits& traits);

}  // namespace tessera::ops
