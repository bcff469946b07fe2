// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "ops/attention/cuda/lane_shape.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/dropout.hpp"

/// What the kernels of attention by rows take. The forward pass goes over rows of A; the backward
/// pass goes over rows for what belongs to targets, and over columns for what belongs to sources.
/// In each, the vertex of the row is the *own* one, those at the other ends are *gathered*.
namespace tessera::ops {

inline constexpr int rows_attention_threads = 128;
inline constexpr int rows_attention_warps = rows_attention_threads / 32;

/// Edges of one row that a whole warp takes: all of them, or a piece of a long row.
struct alignas(32) RowPiece {
  EdgeOffset begin = 0;
  VertexId row = 0;
  std::int32_t count = 0;
  std::int32_t slot = -1;  ///< of what a piece computes; < 0: the only one of its row
  std::int32_t first_slot = 0;
  std::int32_t num_slots = 0;
  std::int32_t cut_row = 0;  ///< which of the rows with several pieces
};

/// Rows of a matrix, whose elements the kernel's type names.
struct AttentionRows {
  const void* data = nullptr;
  std::uint32_t row_bytes = 0;  ///< from one row to the next
  /// All rows before it are followed by one, so that what lies between them may be read.
  VertexId last_row = 0;
};

struct AttentionSums {
  void* data = nullptr;  ///< null: not wanted
  std::int64_t stride = 0;
};

/// What the backward pass needs of a row and head.
struct alignas(8) AttentionRowState {
  float log_sum = 0;  ///< as the forward pass wrote it
  float dot = 0;      ///< dO . O
};

/// GAT: of each row and head, the output as far as it comes from edges whose score lies above 0,
/// and their weights' sum.
struct AttentionAbove {
  float* features = nullptr;  ///< rows x features; null: not wanted
  float* weights = nullptr;   ///< rows x heads
};

/// Everything a launch needs; passed to the GPU by value.
struct RowsAttentionLaunch {
  // Work: pieces first, one per warp, then the short rows, some per warp.
  const RowPiece* pieces = nullptr;
  std::uint32_t num_pieces = 0;
  VertexId num_rows = 0;
  EdgeOffset short_row = 0;  ///< rows of more edges are among the pieces
  LaneShape shape;
  unsigned num_blocks = 0;
  int log_item_rows = 0;  ///< short rows of a warp: one for each of its groups, or more, up to 32

  // Matrix.
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  const EdgeOffset* positions = nullptr;  ///< of edges in CSR, in a pass over columns

  // Features.
  std::int64_t heads = 1;
  std::int64_t width = 0;  ///< of a head
  float slope = 0;
  float scale = 1;
  const void* vector = nullptr;            ///< gatv2; cosine: the factor
  const float* inverse_lengths = nullptr;  ///< cosine: of rows of values
  AttentionRows own_scores, gathered_scores;
  AttentionRows own_values, gathered_values;
  bool drops = false;
  DropoutConstants dropout;
  float kept_factor = 1;  ///< as the dropout's, in single precision

  AttentionAbove above;  ///< what the forward pass keeps, and the backward pass reads

  // Forward.
  AttentionSums output;
  float* log_sum = nullptr;
  std::int64_t log_sum_stride = 0;

  // Backward.
  AttentionRows outputs;                   ///< of the forward run, in the pass over rows
  AttentionRowState* row_state = nullptr;  ///< rows x heads: written by the sweep over rows
  bool state_only = false;                 ///< no gradient of this pass is wanted
  AttentionSums score_gradient;            ///< of the own vertex
  AttentionSums value_gradient;            ///< by columns
  bool adds_to_gradient = false;           ///< cosine: rows have left their share there
  float* vector_sums = nullptr;            ///< a row of features per warp of the grid
  double* scale_sums = nullptr;            ///< a number per slice and warp

  // Rows that are cut.
  float* slots = nullptr;
  std::int64_t slot_size = 0;
  unsigned* num_done = nullptr;  ///< pieces per slice and cut row; all 0 between two runs
  std::uint32_t num_cut_rows = 0;
};

/// Whether values are the sources, so that one gathered row is both.
inline bool shares_rows(const RowsAttentionLaunch& launch) {
  return launch.gathered_scores.data == launch.gathered_values.data &&
         launch.gathered_scores.row_bytes == launch.gathered_values.row_bytes;
}

using RowsAttentionFunction = void (*)(const RowsAttentionLaunch& launch, Stream stream);

}  // namespace tessera::ops
