// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/launch.hpp"
#include "ops/attention/cuda/window_kernels.cuh"
#include "ops/windows/warp_rows.cuh"

namespace tessera::ops {

/// What passes over windows of 16 rows have in common (window_kernels.cuh): a block is one warp, of
/// one head.
struct ShortPass {
  using Launch = WindowsLaunch;
  static constexpr int threads = 32;
  static constexpr int alignment = 128;
  static constexpr bool starts_alone = false;
  static unsigned num_slices(const WindowsLaunch& launch) {
    return static_cast<unsigned>(launch.heads);
  }
};

}  // namespace tessera::ops
