// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/short/fragments.cuh"

/// Sums of dS over the columns j of a row i for which x[i] + y[j] > 0, feature by feature, for the
/// 16 rows of a window and heads of 64 features. For a row this is the product of a matrix of 0 and
/// 1, features by columns, with a vector: the first operand of a matrix instruction are 16 features
/// and the 16 columns of a step, one comparison for two of them. Of the eight columns of the second
/// one has the high and its neighbour the low part of dS; the next 16 features take the next two
/// columns, the others being 0, so that all 64 features of a row are 4 numbers of a lane.
///
/// Features of columns come as lanes hold them for scores. When their 8 x 8 blocks are turned, lane
/// 4 g + q has two columns side by side, of feature 32 c + 8 (g / 2) + 2 w + g % 2 for unit c and
/// word w.
namespace tessera::ops {

template <class T>
class GatV2Masks {
 public:
  static constexpr int width = 64;
  /// Of one step: features and columns, then columns 8 further on.
  struct Columns {
    std::uint32_t of[8][2];
  };

 private:
  static constexpr int row_bytes = width * 2;
  static constexpr int part_bytes = 16 * 32 + 32;  ///< high or low parts: no banks collide

 public:
  static constexpr int own_bytes = 16 * row_bytes;
  static constexpr int step_bytes = 2 * part_bytes;

  /// `own` is for the features of a window, `step` for dS of a step.
  __device__ GatV2Masks(char* own, char* step) : own_(own), step_(step) {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      // Not known to be 0 or 1: a multiplication by it runs beside comparisons, a selection among
      // them.
      taken_[tile] = WarpLane::group() / 2 == tile ? 1u : 0u;
      asm volatile("" : "+r"(taken_[tile]));
    }
  }

  __device__ void clear() {
#pragma unroll
    for (auto& row : sums_) {
#pragma unroll
      for (float& sum : row) sum = 0;
    }
  }

  /// Takes the own rows of a window: load(row, unit) are eight features, negative. They are put in
  /// the order in which a lane has features of columns.
  template <class Load>
  __device__ void begin(Load&& load) {
    __syncwarp();
#pragma unroll
    for (int i = WarpLane::number(); i < 16 * 8; i += 32) {
      const int row = i / 8;
      const int g = i % 8;
      const unsigned halves = g % 2 == 0 ? 0x5410u : 0x7632u;
      const uint4 low = load(row, g / 2);
      const uint4 high = load(row, 4 + g / 2);
      *reinterpret_cast<uint4*>(own_ + row * row_bytes + g * 16) = {
          __byte_perm(low.x, low.y, halves), __byte_perm(low.z, low.w, halves),
          __byte_perm(high.x, high.y, halves), __byte_perm(high.z, high.w, halves)};
    }
    __syncwarp();
  }

  /// Features of columns as scores leave them.
  __device__ static Columns turned(const uint4 (&rows)[2][2]) {
    Columns columns;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint4& unit = rows[i / 2][i % 2];
      columns.of[i / 2 * 4][i % 2] = turned(unit.x);
      columns.of[i / 2 * 4 + 1][i % 2] = turned(unit.y);
      columns.of[i / 2 * 4 + 2][i % 2] = turned(unit.z);
      columns.of[i / 2 * 4 + 3][i % 2] = turned(unit.w);
    }
    return columns;
  }

  /// Takes dS of a step.
  __device__ void put(const StepCells& gradients) {
    const StepOperands<T> operands(gradients);
    char* const to = step_ + WarpLane::group() * 32 + WarpLane::quarter() * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      *reinterpret_cast<uint2*>(to + half * 256) = {operands.high[half][0], operands.high[half][1]};
      *reinterpret_cast<uint2*>(to + half * 256 + part_bytes) = {operands.low[half][0],
                                                                 operands.low[half][1]};
    }
  }
  /// Adds what the columns of that step have; `rows` are those with an edge in it.
  __device__ void add(const Columns& columns, std::uint32_t rows) {
    __syncwarp();
#pragma unroll
    for (int pair = 0; pair < 8; ++pair) {
      if ((rows >> (2 * pair) & 3u) != 0) add_pair(columns, pair);
    }
    __syncwarp();
  }

  /// Of the two neighbouring features of which this lane gets all sums in the end the first.
  __device__ static int feature_of_lane() {
    return first_feature() + (WarpLane::group() % 2 == 0 ? 0 : 2);
  }
  /// Calls store(row, sum, sum of the next feature) with all sums times a, after `factor` times
  /// each and added(row); and adds them, times x, to those of the vector.
  template <class Added, class Store>
  __device__ void finish(float factor, const T* vector, Added&& added, Store&& store) {
    const bool odd = WarpLane::group() % 2 != 0;
    const T* const of_lane = vector + feature_of_lane();
    // A read-only load could move ahead of the wait for the kernel that wrote it.
    const float a[2] = {cuda::widen(of_lane[0]), cuda::widen(of_lane[1])};
#pragma unroll
    for (int row = 0; row < 16; ++row) {
      const float more = added(row);
      const float first = fmaf(factor, sums_[row][0] + sums_[row][1], more);
      const float second = fmaf(factor, sums_[row][2] + sums_[row][3], more);
      add_to_vector(row, first, second);
      // Neighbours exchange, so that each has two features side by side.
      const float other = __shfl_xor_sync(~0u, odd ? first : second, 4);
      store(row, a[0] * (odd ? other : first), a[1] * (odd ? second : other));
    }
  }

  /// This warp's part of the gradient of a.
  __device__ void store_vector_sums(float* to) const {
    const int feature = first_feature() + WarpLane::group() % 2;
    to[feature] = vector_sums_[0];
    to[feature + 2] = vector_sums_[1];
  }

 private:
  /// This lane has sums of the features 0 and 2, or 1 and 3, after this one.
  __device__ static int first_feature() {
    const int q = WarpLane::quarter();
    return q / 2 * 32 + WarpLane::group() / 2 * 8 + q % 2 * 4;
  }
  __device__ static std::uint32_t turned(std::uint32_t block) {
    std::uint32_t result;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(block));
    return result;
  }

  __device__ void add_pair(const Columns& columns, int pair) {
    const int g = WarpLane::group();
    const char* const from = step_ + g % 2 * part_bytes + WarpLane::quarter() * 8;
    uint4 own[2];
    uint2 gradients[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 2 * pair + i;
      own[i] = *reinterpret_cast<const uint4*>(own_ + row * row_bytes + g * 16);
      gradients[i] = *reinterpret_cast<const uint2*>(from + row * 32);
    }
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Pair x = pair_of(tile == 0   ? own[i].x
                               : tile == 1 ? own[i].y
                               : tile == 2 ? own[i].z
                                           : own[i].w);
        const auto& even = columns.of[2 * tile];
        const auto& odd = columns.of[2 * tile + 1];
        const std::uint32_t a[4] = {greater(even[0], low_of(x)), greater(odd[0], high_of(x)),
                                    greater(even[1], low_of(x)), greater(odd[1], high_of(x))};
        const std::uint32_t b[2] = {gradients[i].x * taken_[tile], gradients[i].y * taken_[tile]};
        cuda::multiply_16x8<T>(sums_[2 * pair + i], a, b);
      }
    }
  }

  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  __device__ static Pair pair_of(std::uint32_t word) { return reinterpret_cast<const Pair&>(word); }
  __device__ static Pair low_of(Pair pair) {
    if constexpr (std::is_same_v<T, __half>) {
      return __low2half2(pair);
    } else {
      return __low2bfloat162(pair);
    }
  }
  __device__ static Pair high_of(Pair pair) {
    if constexpr (std::is_same_v<T, __half>) {
      return __high2half2(pair);
    } else {
      return __high2bfloat162(pair);
    }
  }
  /// 1 where y > -x, else 0: a comparison, which nothing is rounded for.
  __device__ static std::uint32_t greater(std::uint32_t y, Pair minus_x) {
    const Pair ones = __hgt2(pair_of(y), minus_x);
    return reinterpret_cast<const std::uint32_t&>(ones);
  }

  __device__ void add_to_vector(int row, float first, float second) {
    const float2 minus_x = unpacked<T>(*reinterpret_cast<const std::uint32_t*>(
        own_ + row * row_bytes + WarpLane::group() * 16 + WarpLane::quarter() * 4));
    // A row without edges adds nothing, whatever it is.
    if (first != 0) vector_sums_[0] = fmaf(-minus_x.x, first, vector_sums_[0]);
    if (second != 0) vector_sums_[1] = fmaf(-minus_x.y, second, vector_sums_[1]);
  }

  char* own_;
  char* step_;
  std::uint32_t taken_[4];  ///< 1 for the features whose columns this lane has
  float sums_[16][4];
  float vector_sums_[2] = {0, 0};
};

}  // namespace tessera::ops
