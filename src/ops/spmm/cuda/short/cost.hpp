// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/short/launch.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Windows of one encoding.
struct ShortShape {
  int height = 8;
  int step_columns = 16;
  int min_width = 32;  ///< features of the narrowest kernel
  /// Windows of up to this many steps stay whole: a warp needs about as long for so many as the
  /// last warp of a window of a thousand steps does to add up its pieces.
  std::int64_t min_cut_steps = 32;
};
ShortShape shape_of(ShortEncoding encoding);

/// 16-bit features of the widest kernel of any encoding; of fp32 ones it takes half as many.
inline constexpr int max_short_width = 128;

/// A lane loads as many features of a row at once.
inline constexpr std::int64_t short_lane_features = 8;

/// Whether X is copied ahead, to rows that fill the loads of lanes.
inline bool copies_x(const SpmmProblem& problem) {
  return problem.features % short_lane_features != 0;
}

/// What it takes, with a unit more for the last lane of the last row.
inline std::int64_t bytes_of_copy(const SpmmProblem& problem) {
  constexpr std::int64_t unit = 16;
  return bytes_of_units(problem) + unit;
}

/// What windows of an encoding should take, from a sample of them.
double predict_short_us(const SpmmProblem& problem, ShortEncoding encoding,
                        const DeviceTraits& traits);

}  // namespace tessera::ops
