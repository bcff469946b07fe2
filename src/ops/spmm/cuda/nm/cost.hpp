// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Windows of up to this many steps stay whole. A step has 32 columns, twice as many as those of
/// other strategies.
inline constexpr std::int64_t nm_min_cut_steps = 16;

/// What 2:4 windows of 16 rows should take, from a sample of windows.
double predict_nm_us(const SpmmProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
