// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/windows/number_pairs.cuh"
#include "ops/windows/quad_rows.cuh"

namespace tessera::ops {

/// The columns of a matrix that belong to a block.
struct BlockColumns {
  int first = 0;
  int count = 0;

  BlockColumns() = default;
  __device__ BlockColumns(int first_column, int most, int of_all)
      : first(first_column), count(of_all - first_column < most ? of_all - first_column : most) {}
};

/// Where gradients go. The matrix may be absent.
struct GradientMatrix {
  void* data = nullptr;
  std::int64_t stride = 0;
  float factor = 1;
  BlockColumns columns;
  int slot_at = 0;  ///< where the matrix's numbers begin in a row of a slot
};

/// Gradients of the rows of a window: to their matrices, or to slots where the window is cut; the
/// block that fills the last slot of a window adds them up in order.
template <class T, int num_matrices>
class GradientResults {
 public:
  __device__ GradientResults(const WindowsLaunch& launch,
                             const GradientMatrix (&matrices)[num_matrices])
      : launch_(launch) {
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) matrices_[m] = matrices[m];
  }

  /// A row of a matrix, or of a slot; of one that does not exist nothing is stored.
  struct Row {
    float* slot;
    T* numbers;
    int count;
    float factor;

    /// Two neighbouring numbers, from column `column` of the block on.
    __device__ void store(int column, float low, float high) const {
      if (column >= count) return;
      if (slot != nullptr) {
        *reinterpret_cast<float2*>(slot + column) = {low, high};
      } else if constexpr (sizeof(T) == 4) {
        *reinterpret_cast<float2*>(numbers + column) = {low * factor, high * factor};
      } else {
        *reinterpret_cast<std::uint32_t*>(numbers + column) =
            packed<T>(low * factor, high * factor);
      }
    }
    /// One number, in column `column` of the block.
    __device__ void store(int column, float number) const {
      if (column >= count) return;
      if (slot != nullptr) {
        slot[column] = number;
      } else {
        numbers[column] = cuda::narrow<T>(number * factor);
      }
    }
  };
  __device__ Row row(const tiles::Piece& piece, int m, int place) const {
    const GradientMatrix& to = matrices_[m];
    Row row{nullptr, nullptr, to.columns.count, to.factor};
    if (piece.slot >= 0) {
      row.slot = slot_numbers(piece.slot, place, to);
    } else if (place < piece.num_rows && to.data != nullptr) {
      row.numbers = numbers(std::int64_t{piece.first_row} + place, to);
    } else {
      row.count = 0;
    }
    return row;
  }
  /// All numbers of the block in the row at `place`, which four lanes have together
  /// (quad_rows.cuh).
  template <int groups>
  __device__ void store_row(const tiles::Piece& piece, int m, int place,
                            const float (&features)[groups][4], int row) const {
    const GradientMatrix& to = matrices_[m];
    if (piece.slot >= 0) {
      store_quad_row(slot_numbers(piece.slot, place, to), features, row);
    } else if (to.data != nullptr) {
      store_quad_row(numbers(std::int64_t{piece.first_row} + place, to), place < piece.num_rows,
                     features, row, to.factor);
    }
  }

  /// After all rows of a piece.
  __device__ void finish(const tiles::Piece& piece) const {
    finish_tall_piece(launch_, piece, [&](const tiles::CutWindow& window) {
#pragma unroll
      for (int m = 0; m < num_matrices; ++m) {
        if (matrices_[m].data != nullptr) join(window, matrices_[m]);
      }
    });
  }

 private:
  /// The block's numbers of a row.
  __device__ float* slot_numbers(int slot, int place, const GradientMatrix& of) const {
    return slot_row_of(launch_, slot, place) + of.slot_at + of.columns.first;
  }
  __device__ static T* numbers(std::int64_t row, const GradientMatrix& of) {
    return static_cast<T*>(of.data) + row * of.stride + of.columns.first;
  }

  __device__ void join(const tiles::CutWindow& window, const GradientMatrix& to) const {
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * to.columns.count;
         i += tall_window_threads) {
      const int place = i / to.columns.count;
      const int column = i % to.columns.count;
      float sum = 0;
      for (int k = 0; k < window.num_slots; ++k) {
        sum += __ldcg(slot_numbers(window.first_slot + k, place, to) + column);
      }
      numbers(std::int64_t{window.first_row} + place, to)[column] =
          cuda::narrow<T>(sum * to.factor);
    }
  }

  const WindowsLaunch& launch_;
  GradientMatrix matrices_[num_matrices];
};

}  // namespace tessera::ops
