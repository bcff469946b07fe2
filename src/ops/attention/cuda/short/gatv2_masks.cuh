// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/step_tile.cuh"

/// Sums of dS over the columns j of a row i for which x[i] + y[j] > 0, feature by feature, for the
/// 16 rows of a window and heads of up to 64 features. For a row this is the product of a matrix of
/// 0 and 1, features by columns, with a vector: the first operand of a matrix instruction are 16
/// features and the 16 columns of a step, one comparison for two of them. Of the eight columns of
/// the second one has the high and its neighbour the low part of dS; the next 16 features take the
/// next two columns, the others being 0, so that all 64 features of a row are 4 numbers of a lane.
///
/// Features of columns come from a tile in 8 x 8 blocks that are turned: lane 4 g + q has two
/// columns side by side, of feature 8 u + g for unit u.
namespace tessera::ops {

/// Which rows of a window have an edge in a step.
__device__ inline std::uint32_t used_rows(std::uint32_t bits) {
  const int g = WarpLane::group();
  return __reduce_or_sync(~0u, ((bits & 0x00050005u) != 0 ? 1u << g : 0u) |
                                   ((bits & 0x000a000au) != 0 ? 256u << g : 0u));
}

template <class T, int width>
class GatV2Masks {
  static constexpr int units = width / 8;
  static constexpr int num_tiles = width / 16;  ///< of 16 features
  static_assert(num_tiles <= 4);

 public:
  /// Of one step: features and columns, then columns 8 further on.
  struct Columns {
    std::uint32_t of[units][2];
  };

 private:
  /// Of a row the features of the two rows of each tile that a lane has to do with.
  struct alignas(4 * num_tiles) OwnFeatures {
    std::uint32_t of_tile[num_tiles];
  };
  static constexpr int part_bytes = 16 * 32 + 32;  ///< high or low parts: no banks collide

 public:
  static constexpr int own_bytes = 16 * 8 * static_cast<int>(sizeof(OwnFeatures));
  static constexpr int step_bytes = 2 * part_bytes;

  /// `own` is for the features of a window, `step` for dS of a step.
  __device__ GatV2Masks(char* own, char* step)
      : own_(reinterpret_cast<OwnFeatures*>(own)), step_(step) {
#pragma unroll
    for (int tile = 0; tile < num_tiles; ++tile) {
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

  /// Takes the own rows of a window, when they have come for all lanes: load(row, unit, half) are
  /// four features. They are put negative, in the order in which a lane has features of columns.
  template <class Load>
  __device__ void begin(Load&& load) {
    const int row = WarpLane::number() / 2;
    const int half = WarpLane::number() % 2;
    uint2 found[units];
#pragma unroll
    for (int unit = 0; unit < units; ++unit) found[unit] = load(row, unit, half);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      OwnFeatures features;
#pragma unroll
      for (int tile = 0; tile < num_tiles; ++tile) {
        const uint2& low = found[2 * tile];
        const uint2& high = found[2 * tile + 1];
        constexpr std::uint32_t signs = 0x80008000u;
        features.of_tile[tile] = signs ^ __byte_perm(i < 2 ? low.x : low.y, i < 2 ? high.x : high.y,
                                                     i % 2 == 0 ? 0x5410u : 0x7632u);
      }
      own_[row * 8 + 4 * half + i] = features;
    }
    __syncwarp();
  }

  /// Features of the columns of a step.
  __device__ static Columns turned(const StepTile<width>& tile) {
    Columns columns;
#pragma unroll
    for (int unit = 0; unit < units; unit += 2) {
      std::uint32_t blocks[4];
      tile.load_columns(blocks, unit);
#pragma unroll
      for (int i = 0; i < 4; ++i) columns.of[unit + i / 2][i % 2] = blocks[i];
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
    return first_feature() + (WarpLane::group() % 2 == 0 ? 0 : 7);
  }
  /// Calls store(row, sum, sum of the next feature) with all sums times a, after `factor` times
  /// each and added(row); and adds them, times x, to those of the vector.
  template <class Added, class Store>
  __device__ void finish(float factor, const T* vector, Added&& added, Store&& store) {
    const bool odd = WarpLane::group() % 2 != 0;
    const T* const of_lane = vector + (has_features() ? feature_of_lane() : 0);
    // A read-only load could move ahead of the wait for the kernel that wrote it.
    const float a[2] = {cuda::widen(of_lane[0]), cuda::widen(of_lane[1])};
#pragma unroll
    for (int row = 0; row < 16; ++row) {
      const float more = added(row);
      const float first = fmaf(factor, sums_[row][0] + sums_[row][1], more);
      const float second = fmaf(factor, sums_[row][2] + sums_[row][3], more);
      // Neighbours exchange, so that each has two features side by side.
      const float other = __shfl_xor_sync(~0u, odd ? first : second, 4);
      if (!has_features()) continue;
      add_to_vector(row, first, second);
      store(row, a[0] * (odd ? other : first), a[1] * (odd ? second : other));
    }
  }

  /// This warp's part of the gradient of a.
  __device__ void store_vector_sums(float* to) const {
    if (!has_features()) return;
    to[first_feature()] = vector_sums_[0];
    to[first_feature() + 8] = vector_sums_[1];
  }

 private:
  /// This lane has sums of this feature and of that 8 further on, if there are as many.
  __device__ static int first_feature() { return WarpLane::quarter() * 16 + WarpLane::group(); }
  __device__ static bool has_features() {
    return num_tiles == 4 || WarpLane::quarter() < num_tiles;
  }

  __device__ void add_pair(const Columns& columns, int pair) {
    const int g = WarpLane::group();
    const char* const from = step_ + g % 2 * part_bytes + WarpLane::quarter() * 8;
    OwnFeatures own[2];
    uint2 gradients[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 2 * pair + i;
      own[i] = own_[row * 8 + g];
      gradients[i] = *reinterpret_cast<const uint2*>(from + row * 32);
    }
#pragma unroll
    for (int tile = 0; tile < num_tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Pair x = pair_of(own[i].of_tile[tile]);
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
    const float2 minus_x =
        unpacked<T>(own_[row * 8 + WarpLane::group()].of_tile[WarpLane::quarter()]);
    // A row without edges adds nothing, whatever it is.
    if (first != 0) vector_sums_[0] = fmaf(-minus_x.x, first, vector_sums_[0]);
    if (second != 0) vector_sums_[1] = fmaf(-minus_x.y, second, vector_sums_[1]);
  }

  OwnFeatures* own_;
  char* step_;
  std::uint32_t taken_[num_tiles];  ///< 1 for the features whose columns this lane has
  float sums_[16][4];
  float vector_sums_[2] = {0, 0};
};

}  // namespace tessera::ops
