// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/cuts.hpp"
#include "ops/dense/cuda/epilogue.hpp"
#include "ops/rows/launch.hpp"

namespace tessera::ops {

/// Some edges of a row that is too long for four lanes; their sum goes to the slot of the same
/// number.
struct UpdatePiece {
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
};

/// Everything a launch needs; passed to the GPU by value.
struct UpdateLaunch {
  struct Work {
    unsigned blocks = 1;  ///< at most
    /// All, in the order in which windows take them; null: in their own.
    const RowSlice* rows = nullptr;
    bool weighted = false;  ///< whether edges have values or scales
    EdgeOffset longest_row = 0;
    const UpdatePiece* pieces = nullptr;
    std::int32_t num_pieces = 0;
    const cuda::CutRow* long_rows = nullptr;  ///< rising, their sums in these slots
    std::int32_t num_long = 0;
    float* slots = nullptr;  ///< num_pieces x inner
  };

  struct Features {
    const void* x = nullptr;
    std::int64_t x_stride = 0;  ///< in elements, as all that follow
    std::int64_t x_rows = 0;
    std::int64_t inner = 0;  ///< width of X
    bool aligned = false;    ///< X's rows begin on 16-byte boundaries and fill whole vectors
    void* y = nullptr;
    std::int64_t y_stride = 0;
    std::int64_t cols = 0;       ///< width of Y
    void* aggregated = nullptr;  ///< null: not wanted
    std::int64_t aggregated_stride = 0;
    bool self = false;
    const void* self_scale = nullptr;  ///< one number; null: 0
  };

  struct Weights {
    const void* weight = nullptr;
    std::int64_t stride = 0;
    const void* root = nullptr;  ///< null: none
    std::int64_t root_stride = 0;
    /// Whether the width of X lies along the rows: those of W, not of W^T.
    bool inner_in_row = true;
  };

  Work work;
  RowsLaunch::Matrix matrix;
  Features features;
  Weights weights;
  EpilogueLaunch epilogue;
};

/// Sums the pieces of long rows, where there are any, and then all rows.
using UpdateFunction = void (*)(const UpdateLaunch& launch, Stream stream);

/// What sets kernels apart: fp32 or bf16, and the width that Y's columns fill up to.
struct UpdateKey {
  Precision precision = Precision::fp32;
  int cols = 64;

  friend constexpr bool operator==(const UpdateKey&, const UpdateKey&) = default;
};

inline constexpr int update_widths[] = {32, 64, 96, 128};

inline constexpr int update_window_rows = 64;

/// What a lane sums at once, as far as there are registers: units of 64 bytes of its rows, and
/// edges of each.
constexpr int update_chunk_units(int element_bytes) { return element_bytes == 4 ? 2 : 1; }
constexpr int update_edges_at_once(int element_bytes) { return element_bytes == 4 ? 2 : 4; }

/// Windows that a block works on at once, a group of four warps each: as many as have room for
/// their sums in registers.
constexpr int update_groups(int cols) { return cols <= 64 ? 4 : 3; }

/// Compiled in units of their own (inst/).
template <UpdateKey key>
struct UpdateKernels {
  static UpdateFunction get();
};

/// Lines of the weights in shared memory, for whole units of 64 bytes of X's rows.
inline std::int64_t update_weight_lines(Precision precision, std::int64_t inner, bool root) {
  const std::int64_t unit = precision != Precision::bf16 ? 16 : 32;
  return (inner + unit - 1) / unit * unit * (root ? 2 : 1);
}

/// Shared memory that the weights of a launch take, with Y's columns filled up to `cols`: planes of
/// whole units of 64 bytes of X's rows and 64 columns. A multiple of 1024.
inline std::int64_t update_weight_bytes(Precision precision, std::int64_t inner, std::int64_t cols,
                                        bool root) {
  const std::int64_t planes = precision != Precision::bf16 ? 3 : 1;
  return planes * update_weight_lines(precision, inner, root) * 128 * ((cols + 63) / 64);
}

/// The same with room to begin on a boundary.
inline std::int64_t update_shared_bytes(Precision precision, std::int64_t inner, std::int64_t cols,
                                        bool root) {
  return update_weight_bytes(precision, inner, cols, root) + 1024;
}

/// The same for a GPU's block at most.
inline constexpr std::int64_t most_update_shared_bytes = 227 << 10;

}  // namespace tessera::ops
