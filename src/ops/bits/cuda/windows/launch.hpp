// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/windows/launch.hpp"

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
extern const std::array<ByteWindowsFunction, 3> byte_windows;
/// The same on wgmma: the pattern times codes, where there are more columns the other way round.
extern const std::array<ByteWindowsFunction, 3> tall_windows;

}  // namespace tessera::ops
