// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/spmm/cuda/tall/launch.hpp"

namespace tessera::ops {

/// Codes summed over tall windows. Work, matrix and features are those of spmm/cuda/tall, whose
/// slots hold integers.
struct ByteWindowsLaunch {
  TallLaunch tall;
  AggregateResult out;
  bool small_sums = false;  ///< all below 2^23; only these are plain
};

struct ByteWindowsFunction {
  int width = 0;      ///< columns of a block
  int slot_sums = 0;  ///< that a block puts by for a window that was cut
  int max_steps = 0;  ///< of a stage
  void (*launch)(const ByteWindowsLaunch&, Stream) = nullptr;
  int (*resident_blocks)() = nullptr;
};

/// Of 32, 64 and 128 columns.
inline constexpr int num_byte_windows = 3;
extern const std::array<ByteWindowsFunction, num_byte_windows> byte_windows;
/// Of 32, 64 and 128 columns, on wgmma: the pattern times codes, where there are more columns the
/// other way round.
inline constexpr int num_tall_windows = 3;
extern const std::array<ByteWindowsFunction, num_tall_windows> tall_windows;

}  // namespace tessera::ops
