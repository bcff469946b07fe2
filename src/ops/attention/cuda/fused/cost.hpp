// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// The power of two that lanes are grouped by: at least `at_least`, from 1 to 32.
int power_of_two(std::int64_t at_least);

/// A warp takes this many edges of one row, or cuts it: with many heads a batch has few edges.
EdgeOffset longest_uncut_row(std::int64_t heads);

/// What the passes of the plan should take.
double predict_fused_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
