// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <type_traits>

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/step_tile.cuh"
#include "ops/cuda/exponentials.cuh"

/// Scores a . leaky_relu(x + y) of the rows of a window, x, with the columns of a step, y.
/// leaky_relu(z) is s z + (1 - s) max(0, z), and max(0, x + y) is x + max(-x, y), so that
///
///     S = a . x + s (a . y) + (1 - s) a . max(-x, y)
///
/// of which only the last part belongs to a cell. A maximum is one of its two numbers, so that
/// nothing is rounded; one instruction finds two. The product with a is a matrix product with a in
/// all of its columns. Its rows are the rows of the window, whose features stay in registers; those
/// of a column come from shared memory, where all lanes that have a quarter of them read the same.
/// What a lane gets of a column is the same for all quarters, of which one keeps it.
namespace tessera::ops {

/// The rows of the window itself as operands of products with gathered rows: those of each lane lie
/// in shared memory for itself, since registers are scarcer.
template <int width>
class OwnRows {
 public:
  static constexpr int chunks = width / 32;
  static constexpr int bytes = 16 * width * 2;

  __device__ OwnRows(char* memory, const void* matrix, std::int64_t stride)
      : memory_(memory + WarpLane::number() * 16),
        rows_(matrix, stride, width, WarpLane::quarter() * 8) {}

  /// Asks for the rows of a window, zeros for those that it does not have.
  __device__ void start(const tiles::Piece& piece) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      const bool exists = place < piece.num_rows && piece.num_steps > 0;
      const char* const from = rows_.at(piece.first_row + (exists ? place : 0));
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::uint32_t to = cuda::shared_address(at(chunk, row));
        if (exists) {
          cuda::copy_16_async(to, from + chunk * 64);
        } else {
          cuda::zero_16_async(to, from);
        }
      }
    }
  }

  __device__ uint4 load(int chunk, int row) const {
    return *reinterpret_cast<const uint4*>(at(chunk, row));
  }
  /// Four features of any row, which another lane may have asked for: half a unit of eight.
  __device__ uint2 load_half(int row, int unit, int half) const {
    const int lane = row % 8 * 4 + unit % 4;
    return *reinterpret_cast<const uint2*>(at(unit / 4, row / 8) +
                                           (lane - WarpLane::number()) * 16 + half * 8);
  }

 private:
  __device__ char* at(int chunk, int row) const { return memory_ + (2 * chunk + row) * 512; }

  char* memory_;
  FeatureRows rows_;
};

template <class T, int width>
class GatV2Scores {
  using Tile = StepTile<width>;
  using Own = OwnRows<width>;

 public:
  static constexpr int chunks = width / 32;  ///< units of eight features per lane and row

  __device__ explicit GatV2Scores(const WindowsLaunch& launch)
      : factor_((1 - launch.slope) * log2_of_e), column_factor_(launch.slope * log2_of_e) {
    const T* const vector = static_cast<const T*>(launch.vector) + std::int64_t{blockIdx.y} * width;
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      // a need not lie on a boundary of 16 bytes. Read-only loads could move ahead of the wait for
      // the kernel that wrote it.
      T unit[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        unit[i] = vector[chunk * 32 + WarpLane::quarter() * 8 + i];
      }
      std::uint32_t words[4];
      memcpy(words, unit, sizeof unit);
#pragma unroll
      for (int i = 0; i < 4; ++i) vector_[chunk][i] = words[i / 2 + i % 2 * 2];
    }
  }

  /// Takes the rows of a window, which this lane has asked for, and keeps them negative.
  __device__ void begin(const Own& own) {
    float sums[4] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
      for (int row = 0; row < 2; ++row) own_[chunk][row] = negative(own.load(chunk, row));
      add_products(sums, own_[chunk], vector_[chunk]);
    }
    linear_[0] = -log2_of_e * sums[0];
    linear_[1] = -log2_of_e * sums[2];
  }

  /// Scores of a step, in powers of two, where it has edges; elsewhere they are anything.
  __device__ void find(StepCells& cells, const Tile& tile) const {
    const typename Tile::Quarters columns(tile);
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      float of_columns[2];
      find_linear(of_columns, tile, block);
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const float of_column = column_factor_ * of_columns[odd];
        // Columns of quarters 0 and 1, then 2 and 3.
        float early[2], late[2];
        find_two(early, columns, 8 * block + odd);
        find_two(late, columns, 8 * block + odd + 4);
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const float kept = (WarpLane::quarter() & 2) != 0 ? late[row] : early[row];
          cells.of[block][2 * row + odd] = fmaf(factor_, kept, of_column + linear_[row]);
        }
      }
    }
  }

  __device__ static uint4 negative(const uint4& unit) {
    constexpr std::uint32_t signs = 0x80008000u;
    return {unit.x ^ signs, unit.y ^ signs, unit.z ^ signs, unit.w ^ signs};
  }

 private:
  using Vector = std::uint32_t[4];
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;

  /// Products of eight features per lane of two rows of 16 with those of a.
  __device__ static void add_products(float (&sums)[4], const uint4 (&rows)[2], const Vector& a) {
    cuda::multiply_16x8<T>(sums, {rows[0].x, rows[1].x, rows[0].z, rows[1].z}, {a[0], a[1]});
    cuda::multiply_16x8<T>(sums, {rows[0].y, rows[1].y, rows[0].w, rows[1].w}, {a[2], a[3]});
  }
  /// Of either half the larger one; not-a-number if one is.
  __device__ static std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
    const Pair result =
        __hmax2_nan(reinterpret_cast<const Pair&>(a), reinterpret_cast<const Pair&>(b));
    return reinterpret_cast<const std::uint32_t&>(result);
  }
  __device__ static uint4 larger(const uint4& a, const uint4& b) {
    return {larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w)};
  }
  /// a . y of columns 2q and 2q + 1 of a block. Rows g of the first operand are a half of a, rows
  /// g + 8 the other: of either product, those that meet their own half count.
  __device__ void find_linear(float (&of_columns)[2], const Tile& tile, int block) const {
    float low[4] = {}, high[4] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const uint4 y = tile.unit(8 * block + WarpLane::group(), chunk * 4 + WarpLane::quarter());
      cuda::multiply_16x8<T>(low, vector_[chunk], {y.x, y.y});
      cuda::multiply_16x8<T>(high, vector_[chunk], {y.z, y.w});
    }
    of_columns[0] = low[0] + high[2];
    of_columns[1] = low[1] + high[3];
  }

  /// a . max(-x, y) of rows g and g + 8 with `column` where this lane's quarter is even, else with
  /// the next but one. Both at once, as a product waits for the one before it.
  __device__ void find_two(float (&kept)[2], const typename Tile::Quarters& columns,
                           int column) const {
    float sums[2][4] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint4 y = columns.unit(column + 2 * i, chunk);
        const uint4 maxima[2] = {larger(own_[chunk][0], y), larger(own_[chunk][1], y)};
        add_products(sums[i], maxima, vector_[chunk]);
      }
    }
    const bool odd = (WarpLane::quarter() & 1) != 0;
    kept[0] = odd ? sums[1][0] : sums[0][0];
    kept[1] = odd ? sums[1][2] : sums[0][2];
  }

  float factor_, column_factor_;  ///< 1 - s and s, in powers of two
  /// Words 0, 2, 1 and 3 of eight features of a, to be pairs of columns or, all four, of rows.
  Vector vector_[chunks];
  uint4 own_[chunks][2];  ///< of rows g and g + 8, negative
  float linear_[2];       ///< a . x of these, in powers of two
};

}  // namespace tessera::ops
