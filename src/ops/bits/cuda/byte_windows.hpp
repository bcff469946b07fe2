// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/bits/cuda/finish_sums.hpp"
#include "ops/spmm/cuda/tall/launch.hpp"

namespace tessera::ops {

/// What becomes of the sums of a window.
struct ByteWindowsResult {
  std::int64_t rows = 0;
  std::int64_t all_rows = 0;  ///< with those that fill a tensor of codes up
  std::int64_t cols = 0;
  BitResult result;
};

struct ByteWindowsFunction {
  int width = 0;      ///< columns of a block
  int max_steps = 0;  ///< of a stage
  void (*launch)(const TallLaunch&, const ByteWindowsResult&, Stream) = nullptr;
  int (*resident_blocks)() = nullptr;
};

/// Of 32, 64 and 128 columns.
inline constexpr int num_byte_windows = 3;
extern const std::array<ByteWindowsFunction, num_byte_windows> byte_windows;

}  // namespace tessera::ops
