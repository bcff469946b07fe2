// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "cuda/mma.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// Scores a . leaky_relu(x + y) on tiles, with x of the window's own rows and y of the columns.
/// leaky_relu(z) is s z + (1 - s) max(0, z), and max(0, x + y) is y - min(-x, y), so that
///
///     S = s (a . x) + a . y - (1 - s) a . min(-x, y)
///
/// of which only the last part belongs to a cell. A minimum is one of its two numbers, so that
/// nothing is rounded; one instruction finds two. The product with a is a matrix product with a in
/// all of its columns.
///
/// Lane 4 g + q holds the same features of rows g and g + 8: those of its units of eight
/// (`unit_of_lane`). Matrix instructions take features in any order, as long as it is that of a.
namespace tessera::ops {

/// How rows of columns lie in shared memory, and which units of eight features a lane holds: such
/// that banks do not collide, and that the units of row 2 n + 1 are those of row 2 n in the next
/// line, with neighbours exchanged.
template <int width>
struct TiledScores : TileRows<width> {
  __device__ static int unit_of_lane(int i) {
    const int q = static_cast<int>(threadIdx.x) % 4;
    return width == 32 ? q : 2 * q + i % 2 + i / 2 * 8;
  }
};

template <class T, int width, class Rows = TiledScores<width>>
class RectifiedScores {
 public:
  static constexpr int lane_units = width / 32;    ///< of eight features
  static constexpr int lane_pairs = width / 8;     ///< of features
  static constexpr int num_products = width / 16;  ///< of matrices, for the sum over a head

  /// `vector` is a of the head.
  __device__ RectifiedScores(const T* vector, float slope) : slope_(slope) {
#pragma unroll
    for (int i = 0; i < lane_pairs; ++i) {
      const T* const from = vector + Rows::unit_of_lane(i / 4) * 8 + i % 4 * 2;
      // Read-only loads could move ahead of the wait for the kernel that wrote them.
      const T both[2] = {from[0], from[1]};
      memcpy(vector_ + i, both, sizeof both);
    }
  }

  /// Takes the two rows of this lane: load(row, unit) are eight features.
  template <class Load>
  __device__ void begin(Load&& load) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < lane_units; ++i) {
        const uint4 unit = load(row, Rows::unit_of_lane(i));
        const std::uint32_t pairs[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 x = widened(pairs[k]);
          const float2 a = widened(vector_[4 * i + k]);
          sum = fmaf(a.x, x.x, fmaf(a.y, x.y, sum));
          minus_own_[row][4 * i + k] = pairs[k] ^ 0x80008000u;
        }
      }
      linear_[row] = slope_ * over_row(sum);
    }
  }
  /// The same of the 16 rows of this warp, from `first_row` of the window on.
  __device__ void begin(const tiles::Piece& piece, int first_row, const T* matrix,
                        std::int64_t stride) {
    const int place = first_row + static_cast<int>(threadIdx.x) % 32 / 4;
    const T* const first = matrix + (std::int64_t{piece.first_row} + place) * stride;
    begin([&](int row, int unit) {
      if (place + 8 * row >= piece.num_rows) return uint4{};
      return __ldg(reinterpret_cast<const uint4*>(first + 8 * row * stride + unit * 8));
    });
  }

  /// Which pairs of columns any of the 16 rows of this warp use: bit 4 group + pair, of the eight
  /// groups of eight columns of a tile.
  __device__ static std::uint32_t used_pairs(const TilePattern& pattern) {
    std::uint32_t groups = pattern.word | pattern.word >> 16;
    groups = (groups | groups >> 1) & 0x5555u;
    groups = (groups | groups << 8) & 0x00550055u;
    groups = (groups | groups << 4) & 0x05050505u;
    groups = (groups | groups << 2) & 0x11111111u;
    return __reduce_or_sync(~0u, groups << (threadIdx.x % 4));
  }

  /// Scores of the 16 columns from `columns` on in powers of two, for the pairs of columns that are
  /// used; of the others they are anything. `pairs` are those of the two groups.
  __device__ void find(float (*cells)[4], std::uint32_t columns, std::uint32_t pairs) const {
    float linear[2][2] = {};
    float minima[2][4] = {};
    if (pairs != 0) find_linear(linear, columns);
#pragma unroll 1
    for (int pair = 0; pair < 4; ++pair) {
      if ((pairs >> pair & 0x11u) != 0) find_pairs(minima, columns, pair);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int group = i / 4;
      cells[group][i % 4] = log2_of_e * fmaf(slope_ - 1, minima[group][i % 4],
                                             linear_[i % 4 / 2] + linear[group][i % 2]);
    }
  }
  /// The same of two steps of a tile, `used` being the pairs of all of its groups.
  __device__ void find(PairScores& scores, std::uint32_t columns, int step,
                       std::uint32_t used) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      find(scores.cells + 2 * half, columns + (step + half) * 16 * Rows::row_bytes,
           used >> (8 * (step + half)) & 255u);
    }
  }

  /// Over the four lanes of a row.
  __device__ static float over_row(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }

 private:
  __device__ static float2 widened(std::uint32_t pair) {
    if constexpr (std::is_same_v<T, __half>) {
      return __half22float2(reinterpret_cast<const __half2&>(pair));
    } else {
      return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
    }
  }
  /// The smaller ones of two pairs; not-a-number if one of two is.
  __device__ static std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
    std::uint32_t result;
    if constexpr (std::is_same_v<T, __half>) {
      asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    } else {
      asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    }
    return result;
  }

  /// Eight features.
  __device__ static void load_unit(std::uint32_t* pairs, std::uint32_t address) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(address)
                 : "memory");
  }

  /// a . y of the 16 columns from `columns` on: of those that the cells of this lane are in.
  __device__ void find_linear(float (&sums)[2][2], std::uint32_t columns) const {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    std::uint32_t pairs[2][lane_pairs];
#pragma unroll
    for (int i = 0; i < lane_units; ++i) {
      load_unit(pairs[0] + 4 * i, columns + Rows::offset(g, Rows::unit_of_lane(i)));
      load_unit(pairs[1] + 4 * i, columns + Rows::offset(g + 8, Rows::unit_of_lane(i)));
    }
    // Columns g and g + 8, for all lanes 4 g + q.
    float found[4] = {};
#pragma unroll
    for (int i = 0; i < num_products; ++i) {
      const std::uint32_t a[4] = {pairs[0][2 * i], pairs[1][2 * i], pairs[0][2 * i + 1],
                                  pairs[1][2 * i + 1]};
      const std::uint32_t b[2] = {vector_[2 * i], vector_[2 * i + 1]};
      cuda::multiply_16x8<T>(found, a, b);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[i / 2][i % 2] =
          __shfl_sync(~0u, found[i / 2 * 2], static_cast<int>(threadIdx.x) % 4 * 8 + i % 2 * 4);
    }
  }

  /// a . min(-x, y) of all rows and a pair of columns of each of two groups, of the 16 columns from
  /// `columns` on: four chains of products, as each waits for the one before it. All lanes of a row
  /// get all four, and one keeps them.
  __device__ void find_pairs(float (&cells)[2][4], std::uint32_t columns, int pair) const {
    std::uint32_t addresses[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      addresses[i] = columns + Rows::offset(2 * pair, Rows::unit_of_lane(i % lane_units));
    }
    float sums[4][4] = {};
#pragma unroll
    for (int i = 0; i < lane_units; ++i) {
      std::uint32_t features[4][4];
#pragma unroll
      for (int column = 0; column < 4; ++column) {
        const int row = column / 2 * 8 + column % 2;
        load_unit(features[column],
                  addresses[(i ^ column) % 2] + row * Rows::row_bytes + i / 2 * Rows::block_bytes);
      }
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        const std::uint32_t b[2] = {vector_[4 * i + k], vector_[4 * i + k + 1]};
#pragma unroll
        for (int column = 0; column < 4; ++column) {
          const std::uint32_t a[4] = {
              smaller(minus_own_[0][4 * i + k], features[column][k]),
              smaller(minus_own_[1][4 * i + k], features[column][k]),
              smaller(minus_own_[0][4 * i + k + 1], features[column][k + 1]),
              smaller(minus_own_[1][4 * i + k + 1], features[column][k + 1])};
          cuda::multiply_16x8<T>(sums[column], a, b);
        }
      }
    }
    if (static_cast<int>(threadIdx.x) % 4 != pair) return;
#pragma unroll
    for (int i = 0; i < 8; ++i) cells[i / 4][i % 4] = sums[i / 4 * 2 + i % 2][i % 4 / 2 * 2];
  }

  float slope_;
  std::uint32_t vector_[lane_pairs];
  std::uint32_t minus_own_[2][lane_pairs];
  float linear_[2];  ///< s (a . x)
};

}  // namespace tessera::ops
