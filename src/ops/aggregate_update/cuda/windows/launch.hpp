// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/aggregate_update/cuda/fused/launch.hpp"
#include "ops/windows/launch.hpp"
#include "ops/windows/policy.hpp"

namespace tessera::ops {

/// Windows to sum, and what becomes of their sums. Of the update's parts, work and matrix are the
/// windows' affair.
struct WindowUpdateLaunch : TallLaunch {
  /// How rows of Y are stored.
  struct Store {
    /// Whether a bias and relu are all they go through, and fours of columns lie on boundaries.
    bool usual = false;
    bool whole_units = false;  ///< whether eights do, too
    std::uint16_t least = 0;   ///< that comes to Y, a bf16: 0 after relu, or minus infinity
  };

  UpdateLaunch update;
  Store store;
  /// Shared memory of the weights, a multiple of 1024 bytes.
  std::int32_t weight_bytes = 0;
  /// From 64 columns of the weights to the next 64, and lines before those of the root weight.
  std::int32_t block_bytes = 0;
  std::int32_t padded_features = 0;
  std::int32_t padded_cols = 0;  ///< that the weights fill up to
};

/// One kernel, for blocks with so much memory for weights; launches of other plans may have more,
/// up to what a block of the GPU may have.
struct WindowUpdateFunction {
  int max_steps = 0;             ///< of a stage
  std::int32_t stage_bytes = 0;  ///< shared memory beside the weights
  void (*launch)(const WindowUpdateLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)(std::int32_t weight_bytes, std::int32_t most_bytes) = nullptr;
};

/// What sets kernels apart: the width that X's columns fill up to, how many columns of Y are
/// multiplied at once, whether columns have scales, whether stages have more of them
/// (long_stages.cuh), and whether warps sum their own rows on mma.sync instead of wgmma.
struct WindowUpdateKey {
  int width = 64;
  int part_cols = 64;
  bool scaled = false;
  bool long_stages = false;
  bool warps = false;

  friend constexpr bool operator==(const WindowUpdateKey&, const WindowUpdateKey&) = default;
};

inline constexpr int window_update_widths[] = {64, 128};
inline constexpr int window_update_cols[] = {64, 96, 128};

/// Columns at once, where Y's fill up to `cols`: more would not fit the registers beside the rows.
constexpr int update_part_cols(int width, int cols) {
  return width == 64 && cols % 64 == 0 ? 64 : 32;
}

inline constexpr int window_update_height = 128;
inline constexpr std::array<TallPolicy, 2> window_update_policies = {{
    {"windows", window_update_height, 32, 2, 1},
    {"windows_mma", window_update_height, 32, 2, 1, false, true},
}};

/// Compiled in units of their own (inst/).
template <WindowUpdateKey key>
struct WindowUpdateKernels {
  static WindowUpdateFunction get();
};

}  // namespace tessera::ops
