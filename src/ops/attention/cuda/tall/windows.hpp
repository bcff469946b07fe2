// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ops/attention/cuda/tall/keeping.hpp"
#include "ops/attention/kernel.hpp"

/// What all kernels over windows are prepared and started by.
namespace tessera::ops {

/// Blocks share the features of a window in slices, each of so many heads or of a part of one.
struct WindowKernel {
  TallAttentionFunction function;
  int num_slices = 1;
  int slice_heads = 1;
  int height = tall_attention_height;
  int warps_per_worker = tall_attention_threads / 32;
  /// The backward pass, over rows, then over columns; without launchers where rows have it.
  TallAttentionFunction by_rows = {};
  TallAttentionFunction by_columns = {};
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
  /// Adds up what the warps of both sweeps leave of the gradient of a; null: there is none.
  void (*store_vector)(const float* sums, std::int64_t num_sums, std::int64_t features, void* to,
                       Stream stream) = nullptr;
};

/// Which of `tall_head_widths` the heads have.
std::optional<std::size_t> tall_width_index(const AttentionOptions& options);

/// What one such kernel is, for the table of all.
struct WindowsEntry {
  const char* name;
  const char* description;
  std::string (*why_not)(const AttentionProblem& problem);
  double (*predicted_us)(const AttentionProblem& problem);
  std::unique_ptr<const PreparedAttention> (*prepare)(const AttentionProblem& problem);
};
AttentionKernel windows_attention(const WindowsEntry& entry);

/// Runs on tiles, but for those whose operands lie on no boundaries of 16 bytes, and for passes
/// that the kernel does not have: these go by rows.
std::unique_ptr<const PreparedAttention> prepare_windows_attention(const AttentionProblem& problem,
                                                                   const WindowKernel& kernel);

}  // namespace tessera::ops
