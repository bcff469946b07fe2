// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "tessera/core/device.hpp"
#include "tiles/pieces.hpp"

/// What kernels over windows take that find the weights of edges themselves, from what is known of
/// their vertices.
namespace tessera::ops {

/// Tall windows: a block has four warps of 16 rows each. Narrow heads share its 32 features.
inline constexpr int tall_window_height = 64;
inline constexpr int tall_window_threads = 2 * tall_window_height;
constexpr int tall_block_heads(int width) { return width < 32 ? 32 / width : 1; }

/// Short windows: a warp has 16 rows.
inline constexpr int short_window_height = 16;

/// Everything a launch needs; passed to the GPU by value.
struct WindowsLaunch {
  // Work.
  const tiles::Piece* pieces = nullptr;
  const std::int32_t* worker_offsets = nullptr;  ///< a block's pieces
  std::int32_t num_workers = 0;

  // Matrix.
  VertexId num_rows = 0;
  const VertexId* columns = nullptr;
  const std::uint32_t* words = nullptr;
  cuda::Offsets offsets;

  // Features. Strides are in elements.
  std::int64_t heads = 1;
  const void* target = nullptr;
  std::int64_t target_stride = 0;
  const void* source = nullptr;
  std::int64_t source_stride = 0;
  const void* value = nullptr;
  std::int64_t value_stride = 0;
  const void* vector = nullptr;  ///< gatv2
  float slope = 0;
  float scale = 1;

  void* output = nullptr;
  std::int64_t output_stride = 0;
  float* log_sum = nullptr;
  std::int64_t log_sum_stride = 0;

  // Backward: `value` is gathered, V or dO; of the own vertex, dO or V. Gradients may be null.
  const void* own_values = nullptr;
  std::int64_t own_values_stride = 0;
  const void* own_output = nullptr;  ///< O, where D is taken from it
  std::int64_t own_output_stride = 0;
  void* score_gradient = nullptr;
  std::int64_t score_gradient_stride = 0;
  /// Per row of A and head what the sweep over rows leaves for that over columns.
  void* row_state = nullptr;
  /// The sizes of the largest feature of dO, in bits of bf16, and of the largest D, in bits of
  /// fp32: found by rows and used by columns, where gradients are fp16.
  std::uint32_t* largest = nullptr;
  double* scale_sums = nullptr;  ///< per warp of the grid: its part of the gradient of the scale
  float* vector_sums = nullptr;  ///< gatv2: a row of features per warp of the grid

  /// What pieces of cut windows found, 64 rows per slot: features, then bases, then sums of the
  /// heads of every slice.
  float* slots = nullptr;
  std::int64_t slot_row = 0;     ///< numbers per row
  unsigned* arrivals = nullptr;  ///< per slice and slot, at the window's first; 0 between runs
  const tiles::CutWindow* slot_windows = nullptr;
  std::int32_t num_slots = 0;
};

struct WindowsFunction {
  void (*launch)(const WindowsLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)() = nullptr;
};

}  // namespace tessera::ops
