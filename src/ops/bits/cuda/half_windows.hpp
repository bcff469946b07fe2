// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/spmm/cuda/tall/launch.hpp"

namespace tessera::ops {

struct HalfWindowsFunction {
  int width = 0;      ///< columns of a block
  int max_steps = 0;  ///< of a stage
  void (*launch)(const TallLaunch&, const AggregateResult&, Stream) = nullptr;
  int (*resident_blocks)() = nullptr;
};

/// Of 32, 64 and 128 columns.
inline constexpr int num_half_windows = 3;
extern const std::array<HalfWindowsFunction, num_half_windows> half_windows;

}  // namespace tessera::ops
