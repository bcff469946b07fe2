// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "ops/dense/cuda/epilogue.hpp"
#include "ops/rows/policy.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// A row that one team or warp gathers: 16 bytes, so that one load brings all of it.
struct alignas(16) RowSlice {
  EdgeOffset begin = 0;
  VertexId row = -1;
  std::int32_t count = 0;
};

/// A short row with the columns of its first edges, of which there may be fewer: whoever has its
/// place need not wait for them.
struct RowStart {
  RowSlice slice;
  VertexId columns[4] = {};
};

/// Some edges of a long row, which a whole block gathers.
struct LongPiece {
  VertexId row = 0;
  std::int32_t split_row = -1;  ///< which; < 0: the only piece of its row
  std::int32_t slot = -1;
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
};

/// A row of several pieces, whose results stand in consecutive slots.
struct SplitRow {
  std::int32_t first_slot = 0;
  std::int32_t num_slots = 0;
};

/// Everything a launch needs; passed to the GPU by value.
struct RowsLaunch {
  struct Work {
    unsigned block_threads = 128;
    /// Blocks come in this order: a piece each; a row of `wide_rows` for each warp; a short row for
    /// each team.
    const LongPiece* pieces = nullptr;
    std::uint32_t num_pieces = 0;
    const RowSlice* wide_rows = nullptr;
    std::uint32_t num_wide = 0;
    std::uint32_t num_wide_blocks = 0;
    /// Null: all rows in the order of the graph, of which those with more than `short_row` edges
    /// are left out.
    const RowStart* short_rows = nullptr;
    std::uint32_t num_short = 0;
    EdgeOffset short_row = 0;

    const SplitRow* split_rows = nullptr;
    void* slots = nullptr;  ///< num_slots x features of what the reduction keeps of an element
    /// Pieces that are done, for each split row and block of features; all 0 between two runs.
    unsigned* num_done = nullptr;
    /// The teams of a warp take parts of one row beside each other, where rows have an even number
    /// of parts, instead of the same part of rows of their own: whole rows are then loaded at once.
    bool parts_beside = false;
    bool follows = false;  ///< the launch before is part of the same run (cuda/overlapped_pair.cuh)
  };

  struct Matrix {
    VertexId num_rows = 0;
    cuda::Offsets offsets;
    const VertexId* indices = nullptr;

    /// The weight of an edge is value * col_scale[its column], each 1 if null. Values are those of
    /// the graph (fp32), or the caller's, stored as features are.
    const float* graph_values = nullptr;
    const void* stored_values = nullptr;
    std::int64_t value_stride = 1;
    const EdgeOffset* positions = nullptr;
    const float* col_scale = nullptr;
    float sign = 1;  ///< of max and min: -1 turns the largest into the smallest

    bool weighted() const noexcept {
      return graph_values != nullptr || stored_values != nullptr || col_scale != nullptr;
    }
  };

  struct Features {
    const void* x = nullptr;
    std::int64_t x_stride = 0;  ///< in elements, as all that follow
    void* y = nullptr;
    std::int64_t y_stride = 0;
    std::int64_t count = 0;
    /// Rows of x whose blocks of 16 bytes lie in it, the ends that they begin and end in included.
    VertexId rows_in_blocks = 0;

    VertexId* winners = nullptr;  ///< of max and min, or null
    std::int64_t winners_stride = 0;
    /// For the gradient of max and min: the row of Y that won each element of x.
    const VertexId* won_by = nullptr;
    std::int64_t won_by_stride = 0;
  };

  Work work;
  Matrix matrix;
  Features features;
  EpilogueLaunch epilogue;
};

/// Runs one policy on the caller's stream.
using RowsFunction = void (*)(const RowsLaunch& launch, Stream stream);

}  // namespace tessera::ops
