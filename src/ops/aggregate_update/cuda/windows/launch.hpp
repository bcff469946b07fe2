// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/aggregate_update/cuda/fused/launch.hpp"
#include "ops/spmm/cuda/tall/launch.hpp"
#include "ops/spmm/cuda/tall/policy.hpp"

namespace tessera::ops {

/// Windows to sum, and what becomes of their sums. Of the update's parts, work and matrix are the
/// windows' affair.
struct WindowUpdateLaunch : TallLaunch {
  UpdateLaunch update;
  /// Shared memory of the weights, a multiple of 1024 bytes.
  std::int32_t weight_bytes = 0;
};

/// One kernel, for blocks with so much memory for weights.
struct WindowUpdateFunction {
  int max_steps = 0;  ///< of a stage
  void (*launch)(const WindowUpdateLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)(std::int32_t weight_bytes) = nullptr;
};

/// What sets kernels apart: the widths that X's and Y's columns fill up to, and whether columns
/// have scales.
struct WindowUpdateKey {
  int width = 64;
  int cols = 64;
  bool scaled = false;

  friend constexpr bool operator==(const WindowUpdateKey&, const WindowUpdateKey&) = default;
};

inline constexpr int window_update_widths[] = {64, 128};
inline constexpr int window_update_cols[] = {64, 96, 128};

inline constexpr TallPolicy window_update_policy = {"windows", 128, 32, 2, 1};

/// Of the weights, beside which a block has its stages.
inline constexpr std::int64_t most_window_weight_bytes = 160 << 10;

/// Compiled in units of their own (inst/).
template <WindowUpdateKey key>
struct WindowUpdateKernels {
  static WindowUpdateFunction function();
};

}  // namespace tessera::ops
