// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/elements.cuh"
#include "ops/gemm/cuda/neighbours.cuh"
#include "ops/gemm/cuda/planes.cuh"
#include "ops/gemm/cuda/split_sums.cuh"

namespace tessera::ops {

/// Numbers along the inner size that are multiplied between two barriers.
inline constexpr int inner_chunk = 32;

/// Four 8 x 8 matrices of 16-bit numbers from shared memory, one row of them per lane's address.
template <bool transposed>
__device__ inline void load_matrices(std::uint32_t (&words)[4], const std::uint16_t* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
  }
}

/// What a block needs of one factor for a chunk: `outer` rows or columns of the product, and
/// `inner_chunk` numbers of each. The factor lies in memory with its inner size along the rows
/// (`inner_in_row`) or across them; the planes in shared memory lie as it does.
template <class T, int outer, bool inner_in_row>
class StagedTile {
 public:
  static constexpr int tile_rows = inner_in_row ? outer : inner_chunk;
  static constexpr int tile_cols = inner_in_row ? inner_chunk : outer;
  /// Eight more numbers per row, so that eight rows begin in different banks.
  static constexpr int row_stride = tile_cols + 8;
  static constexpr int plane_stride = tile_rows * row_stride;
  static constexpr int shared_numbers = num_planes_of<T> * plane_stride;

  /// With `ones` one more of the outer size follows, all of whose numbers are 1; only where the
  /// inner size lies across the rows.
  __device__ StagedTile(cuda::Rows<const T> matrix, std::int64_t first_outer,
                        std::int64_t num_outer, std::uint16_t* shared, bool ones = false)
      : matrix_(matrix),
        first_outer_(first_outer),
        num_outer_(num_outer),
        shared_(shared),
        ones_(ones) {
    vector_ = neighbours_at_once(matrix);
  }

  /// Begins to load the chunk [begin, end) of the inner size; what lies past it is 0.
  __device__ void fetch(std::int64_t begin, std::int64_t end) {
    const std::int64_t outer_left = num_outer_ - first_outer_;
    const std::int64_t rows = inner_in_row ? outer_left : end - begin;
    const std::int64_t cols = inner_in_row ? end - begin : outer_left;
    const std::int64_t first_row = inner_in_row ? first_outer_ : begin;
    const std::int64_t first_col = inner_in_row ? begin : first_outer_;
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      const int four = i * product_threads + static_cast<int>(threadIdx.x);
      const int row = four / fours_per_row;
      const int col = four % fours_per_row * 4;
      const T* const source = matrix_.data + (first_row + row) * matrix_.stride + first_col + col;
      const bool is_there = four < num_fours && row < rows;
      load_neighbours(source, is_there ? cols - col : 0, vector_, values_[i]);
      if constexpr (!inner_in_row) {
        if (!ones_ || !is_there) continue;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (cols == col + j) values_[i][j] = T(1.0f);
        }
      }
    }
  }

  /// Writes what was fetched into shared memory, as planes.
  __device__ void keep() const {
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      const int four = i * product_threads + static_cast<int>(threadIdx.x);
      if (num_fours % product_threads != 0 && four >= num_fours) break;
      std::uint16_t* const place =
          shared_ + four / fours_per_row * row_stride + four % fours_per_row * 4;
      if constexpr (num_planes_of<T> == 1) {
        *reinterpret_cast<uint2*>(place) = *reinterpret_cast<const uint2*>(values_[i]);
      } else {
        FourInPlanes(values_[i]).keep(place, plane_stride * 2);
      }
    }
  }

  /// 16 of the outer and 16 of the inner size as tensor cores take them. Words 0 and 1 are the
  /// first eight of the inner size and words 2 and 3 the others where the tile is the left factor;
  /// for the right one words 0 and 1 are its first eight columns, words 2 and 3 the others.
  template <bool is_left>
  __device__ void fragment(int plane, int first_outer, int first_inner,
                           std::uint32_t (&words)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int matrix = lane / 8;
    // Which half of the outer and inner 16 this lane's matrix is.
    const int outer_half = is_left ? matrix % 2 : matrix / 2;
    const int inner_half = is_left ? matrix / 2 : matrix % 2;
    const int inner_place = first_inner + inner_half * 8;
    const int outer_place = first_outer + outer_half * 8;
    const int row = (inner_in_row ? outer_place : inner_place) + lane % 8;
    const int col = inner_in_row ? inner_place : outer_place;
    load_matrices<!inner_in_row>(words, shared_ + plane * plane_stride + row * row_stride + col);
  }

 private:
  static constexpr int fours_per_row = tile_cols / 4;
  static constexpr int num_fours = tile_rows * fours_per_row;
  static constexpr int fours = (num_fours + product_threads - 1) / product_threads;

  cuda::Rows<const T> matrix_;
  std::int64_t first_outer_, num_outer_;
  std::uint16_t* shared_;
  bool ones_;
  int vector_;
  alignas(8) T values_[fours][4];
};

}  // namespace tessera::ops
