// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/attention/cuda/window_functions.hpp"
#include "ops/attention/kernel.hpp"

/// What all kernels over windows are prepared and started by.
namespace tessera::ops {

/// Blocks share the features of a window in slices, each of so many heads or of a part of one.
struct WindowKernel {
  WindowsFunction function;
  int num_slices = 1;
  int slice_heads = 1;
  int height = tall_window_height;
  int warps_per_worker = tall_window_threads / 32;
  WindowsSweeps gradient = {};  ///< without launchers where rows have the backward pass
  int gradient_slices = 1;
  /// Numbers that the sweeps keep per row of a piece of a cut window.
  std::int64_t row_slot = 0;
  std::int64_t column_slot = 0;
  /// Numbers that the sweep over rows leaves per row and head.
  int state_numbers = 2;
  /// Whether it also leaves the sizes of the largest numbers.
  bool finds_largest = false;
  /// The forward pass that spares the sweep over rows; null: there is none.
  const KeepingFunctions* keeping = nullptr;
};

/// Runs on tiles, but for those whose operands lie on no boundaries of 16 bytes, and for passes
/// that the kernel does not have: these go by rows.
std::unique_ptr<const PreparedAttention> prepare_windows_attention(const AttentionProblem& problem,
                                                                   const WindowKernel& kernel);

}  // namespace tessera::ops
