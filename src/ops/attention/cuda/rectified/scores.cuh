// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/mma.cuh"
#include "ops/attention/cuda/rectified/fp16_rows.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// Scores a . leaky_relu(x + y) on tiles, with x of the window's own rows and y of the columns.
/// leaky_relu(z) is slope z + (1 - slope) max(0, z), so that
///
///     S = slope (a . x + a . y) + (1 - slope) a . max(0, x + y)
///
/// of which only the last part belongs to a cell. Its sums are of pairs in fp16, each rounded
/// once, and one instruction adds and rectifies two; the product with a is a matrix product with a
/// in all of its columns. For bf16 features of a like size the sums lose nothing.
///
/// Lane 4 g + q holds the same features of rows g and g + 8: those of its units of eight
/// (`unit_of_lane`). Matrix instructions take features in any order, as long as it is that of a.
namespace tessera::ops {

/// The sizes that fp16 serves for. Rounding moves a score by 2^-11 of the magnitudes behind it at
/// most, on random features by a tenth of that: so these are limited, too.
struct Fp16Limits {
  static constexpr float feature = 32000;    ///< so that sums of two are finite
  static constexpr float vector_sum = 4096;  ///< of |a|: small features are off by 2^-25
  static constexpr float score = 512;        ///< the sum of |a| times the largest |x| and |y|
};

template <class T, int width>
class RectifiedScores {
 public:
  using Rows = TileRows<width>;
  static constexpr int lane_units = width / 32;    ///< of eight features
  static constexpr int lane_pairs = width / 8;     ///< of features
  static constexpr int num_products = width / 16;  ///< of matrices, for the sum over a head

  __device__ RectifiedScores(const TallAttentionLaunch& launch, int first_feature)
      : launch_(launch), first_feature_(first_feature) {
    const T* const vector = vector_in_memory();
    float sum = 0;
    Fp16Pairs<T> pairs;
#pragma unroll
    for (int i = 0; i < lane_pairs; ++i) {
      const T* const from = vector + feature_of_pair(i);
      const T both[2] = {__ldg(from), __ldg(from + 1)};
      std::uint32_t raw;
      memcpy(&raw, both, sizeof raw);
      vector_[i] = pairs.convert(raw);
      sum += fabsf(cuda::widen(both[0])) + fabsf(cuda::widen(both[1]));
    }
    vector_sum_ = over_row(sum);
  }

  /// Takes the rows of this lane: of the 16 of its warp, from `first_row` of the window on.
  __device__ void begin(const tiles::Piece& piece, int first_row) {
    const int place = first_row + static_cast<int>(threadIdx.x) % 32 / 4;
    row_ = std::int64_t{piece.first_row} + place;
    Fp16Pairs<T> pairs;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const T* const from = own_in_memory(row);
#pragma unroll
      for (int i = 0; i < lane_units; ++i) {
        uint4 unit = {};
        if (place + 8 * row < piece.num_rows)
          unit = __ldg(reinterpret_cast<const uint4*>(from + unit_of_lane(i) * 8));
        const uint4 converted = pairs.convert(unit);
        own_[row][4 * i] = converted.x;
        own_[row][4 * i + 1] = converted.y;
        own_[row][4 * i + 2] = converted.z;
        own_[row][4 * i + 3] = converted.w;
      }
      float sum = 0;
#pragma unroll
      for (int i = 0; i < lane_pairs; ++i) {
        const float2 x = __half22float2(reinterpret_cast<const __half2&>(own_[row][i]));
        const float2 a = __half22float2(reinterpret_cast<const __half2&>(vector_[i]));
        sum = fmaf(a.x, x.x, fmaf(a.y, x.y, sum));
      }
      linear_[row] = over_row(sum);
    }
    const auto top = static_cast<unsigned short>(pairs.largest_of_warp());
    own_top_ = __half2float(__ushort_as_half(top));
  }

  /// Whether fp16 serves for the rows of this warp and columns up to `column_top`.
  __device__ bool serves(float column_top) const {
    return column_top <= Fp16Limits::feature && own_top_ <= Fp16Limits::feature &&
           vector_sum_ <= Fp16Limits::vector_sum &&
           (own_top_ + column_top) * vector_sum_ <= Fp16Limits::score;
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

  /// Scores of two steps in powers of two, for the pairs of columns that are used; of the others
  /// they are anything. `columns` are rows of fp16 in shared memory, `used` the pairs of these four
  /// groups.
  __device__ void find(PairScores& scores, std::uint32_t columns, int step,
                       std::uint32_t used) const {
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      float sloped[4] = {linear_[0], linear_[0], linear_[1], linear_[1]};
      float rectified[4] = {};
      const std::uint32_t pairs = used >> (4 * group) & 15u;
      if (pairs != 0) {
        const int first = step * 16 + group * 8;
        add_linear(sloped, columns, first);
#pragma unroll 1
        for (int pair = 0; pair < 4; ++pair) {
          if ((pairs >> pair & 1u) != 0) add_pair(rectified, columns, first, pair);
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        scores.cells[group][k] = log2_of_e * fmaf(1 - slope(), rectified[k], slope() * sloped[k]);
      }
    }
  }

  /// The same in fp32, of the edges alone. `columns` are those of the two steps.
  __device__ void find_in_memory(PairScores& scores, const VertexId* columns,
                                 const StepPattern (&cells)[2]) const {
#pragma unroll 1
    for (int cell = 0; cell < 16; ++cell) {
      const int group = cell / 4;
      const int row = cell / 2 % 2;
      const int odd = cell % 2;
      const int column = group * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + odd;
      float score = 0;
      if (cells[group / 2].has(group % 2 * 2 + row, odd)) {
        score = score_in_memory(row, __ldg(columns + column));
      }
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        if (i == cell) scores.cells[i / 4][i % 4] = score;
      }
    }
  }

  /// Whose features this lane holds, chosen so that banks do not collide.
  __device__ static int unit_of_lane(int i) {
    const int q = static_cast<int>(threadIdx.x) % 4;
    return width == 32 ? q : 2 * q + i % 2 + i / 2 * 8;
  }
  /// Over the four lanes of a row.
  __device__ static float over_row(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }

  __device__ const T* vector_in_memory() const {
    return static_cast<const T*>(launch_.vector) + first_feature_;
  }

 private:
  __device__ float slope() const { return launch_.slope; }
  __device__ const T* own_in_memory(int row) const {
    return static_cast<const T*>(launch_.target) + (row_ + 8 * row) * launch_.target_stride +
           first_feature_;
  }
  __device__ float score_in_memory(int row, std::int64_t column) const {
    const T* const a = vector_in_memory();
    const T* const x = own_in_memory(row);
    const T* const y =
        static_cast<const T*>(launch_.source) + column * launch_.source_stride + first_feature_;
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < width; ++i) {
      const float z = cuda::widen(__ldg(x + i)) + cuda::widen(__ldg(y + i));
      sum = fmaf(cuda::widen(__ldg(a + i)), z > 0 ? z : slope() * z, sum);
    }
    return sum * log2_of_e;
  }

  __device__ static int feature_of_pair(int i) { return unit_of_lane(i / 4) * 8 + i % 4 * 2; }

  /// Another register, so that what it is a copy of stays where products want it.
  __device__ static std::uint32_t copied(std::uint32_t from) {
    std::uint32_t copy;
    asm volatile("mov.b32 %0, %1;" : "=r"(copy) : "r"(from));
    return copy;
  }

  /// Eight features.
  __device__ static void load_unit(std::uint32_t* pairs, std::uint32_t address) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(address)
                 : "memory");
  }

  /// a . y of eight columns, for any row.
  __device__ void add_linear(float (&sums)[4], std::uint32_t columns, int first) const {
    std::uint32_t pairs[lane_pairs];
    const int column = first + static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int i = 0; i < lane_units; ++i) {
      load_unit(pairs + 4 * i, columns + Rows::offset(column, unit_of_lane(i)));
    }
#pragma unroll
    for (int i = 0; i < num_products; ++i) {
      const std::uint32_t low = copied(vector_[2 * i]);
      const std::uint32_t high = copied(vector_[2 * i + 1]);
      const std::uint32_t a[4] = {low, low, high, high};
      const std::uint32_t b[2] = {pairs[2 * i], pairs[2 * i + 1]};
      cuda::multiply_16x8<__half>(sums, a, b);
    }
  }

  /// a . max(0, x + y) of all rows and two columns. All lanes of a row get both, and one keeps
  /// them.
  __device__ void add_pair(float (&cells)[4], std::uint32_t columns, int first, int pair) const {
    // The two columns lie in the same place of two lines, with neighbouring units exchanged.
    const std::uint32_t address = columns + Rows::offset(first + 2 * pair, unit_of_lane(0));
    float sums[2][4] = {};
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      std::uint32_t pairs[lane_pairs];
#pragma unroll
      for (int i = 0; i < lane_units; ++i) {
        const int unit = width == 32 ? 0 : i % 2 ^ odd;
        load_unit(pairs + 4 * i,
                  address + odd * Rows::row_bytes + unit * 16 + i / 2 * Rows::block_bytes);
      }
#pragma unroll
      for (int i = 0; i < num_products; ++i) {
        const std::uint32_t a[4] = {rectified_sum(own_[0][2 * i], pairs[2 * i]),
                                    rectified_sum(own_[1][2 * i], pairs[2 * i]),
                                    rectified_sum(own_[0][2 * i + 1], pairs[2 * i + 1]),
                                    rectified_sum(own_[1][2 * i + 1], pairs[2 * i + 1])};
        const std::uint32_t b[2] = {vector_[2 * i], vector_[2 * i + 1]};
        cuda::multiply_16x8<__half>(sums[odd], a, b);
      }
    }
    if (static_cast<int>(threadIdx.x) % 4 != pair) return;
    cells[0] = sums[0][0];
    cells[1] = sums[1][0];
    cells[2] = sums[0][2];
    cells[3] = sums[1][2];
  }

  const TallAttentionLaunch& launch_;
  int first_feature_;
  std::int64_t row_;  ///< row g
  float vector_sum_;  ///< of |a|
  std::uint32_t vector_[lane_pairs];
  std::uint32_t own_[2][lane_pairs];
  float linear_[2];  ///< a . x
  float own_top_;
};

}  // namespace tessera::ops
