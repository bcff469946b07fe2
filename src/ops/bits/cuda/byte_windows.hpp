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
/// Of 32, 64 and 128 columns, on wgmma.
inline constexpr int num_wide_windows = 3;
extern const std::array<ByteWindowsFunction, num_wide_windows> wide_windows;
/// Of 32, 64 and 128 columns, on wgmma with the pattern in registers.
inline constexpr int num_tall_bytes = 3;
extern const std::array<ByteWindowsFunction, num_tall_bytes> tall_bytes;
/// Of 32, 64 and 128 columns, codes turned once for all warps.
inline constexpr int num_turned_windows = 3;
extern const std::array<ByteWindowsFunction, num_turned_windows> turned_windows;

}  // namespace tessera::ops
