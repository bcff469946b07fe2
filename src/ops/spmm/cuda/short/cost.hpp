// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Windows of up to this many steps stay whole: a warp needs about as long for so many as the last
/// warp of a window of a thousand steps does to add up its pieces.
inline constexpr std::int64_t short_min_cut_steps = 32;

/// What windows of 8 rows should take, from a sample of them.
double predict_short_us(const SpmmProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
