// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "cuda/mma.cuh"
#include "ops/attention/cuda/pairs/edges.cuh"
#include "ops/cuda/exponentials.cuh"

/// Scores a . leaky_relu(x + y) of edges, x of the own row and y of the vertex at the other end. As
/// over windows (short/gatv2_scores.cuh),
///
///     S = a . x + s (a . y) + (1 - s) a . max(-x, y)
///
/// where a maximum is one of its two numbers, so that nothing is rounded, and one instruction finds
/// two. Products with a are matrix products with a in all columns, so that all four lanes of an
/// edge have its score.
namespace tessera::ops {

/// Features that eight of each edge meet, as the second operand of a matrix instruction: of its
/// columns, even ones have words 0 and 2 of eight features, odd ones 1 and 3.
struct MetFeatures {
  std::uint32_t of[2];

  MetFeatures() = default;
  __device__ explicit MetFeatures(const uint4& unit)
      : of{is_odd() ? unit.y : unit.x, is_odd() ? unit.w : unit.z} {}

 private:
  __device__ static bool is_odd() { return WarpLane::group() % 2 != 0; }
};

/// Sums of products of eight edges' features with those that they meet. Rows g of the first operand
/// are half of the features of edge g, rows g + 8 the other half, as 16 bytes of a row have them:
/// of the products of either, those with their own words count.
struct EdgeProducts {
  float sums[4] = {};

  template <class T>
  __device__ void add(const uint4& unit, const MetFeatures& met) {
    cuda::multiply_16x8<T>(sums, {unit.x, unit.y, unit.z, unit.w}, met.of);
  }
  /// Of edge g.
  __device__ float total() const { return sums[0] + sums[3]; }
};

/// Of either 16-bit number the larger one; not-a-number if one is.
template <class T>
__device__ uint4 larger_of(const uint4& a, const uint4& b) {
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  const auto larger = [](std::uint32_t x, std::uint32_t y) {
    const Pair result =
        __hmax2_nan(reinterpret_cast<const Pair&>(x), reinterpret_cast<const Pair&>(y));
    return reinterpret_cast<const std::uint32_t&>(result);
  };
  return {larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w)};
}

__device__ inline uint4 minus(const uint4& unit) {
  constexpr std::uint32_t signs = 0x80008000u;
  return {unit.x ^ signs, unit.y ^ signs, unit.z ^ signs, unit.w ^ signs};
}

template <class T, int width>
class EdgeScores {
 public:
  using Row = LaneRow<T, width>;

  __device__ EdgeScores(const void* vector, float slope)
      : factor_((1 - slope) * log2_of_e), met_factor_(slope * log2_of_e) {
    const T* const from = static_cast<const T*>(vector) + std::int64_t{blockIdx.y} * width;
#pragma unroll
    for (int chunk = 0; chunk < Row::chunks; ++chunk) {
      // a need not lie on a boundary of 16 bytes. Read-only loads could move ahead of the wait for
      // the kernel that wrote it.
      T features[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) features[i] = from[chunk * 32 + WarpLane::quarter() * 8 + i];
      uint4 unit;
      memcpy(&unit, features, sizeof unit);
      vector_[chunk] = MetFeatures(unit);
    }
  }

  /// Takes the own rows.
  __device__ void begin(const Row (&rows)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      EdgeProducts products;
#pragma unroll
      for (int chunk = 0; chunk < Row::chunks; ++chunk) {
        minus_own_[half].of[chunk] = minus(rows[half].of[chunk]);
        products.add<T>(minus_own_[half].of[chunk], vector_[chunk]);
      }
      linear_[half] = -log2_of_e * products.total();
    }
  }

  /// In powers of two.
  __device__ void find(float (&scores)[2], const Row (&met)[2]) const {
    EdgeProducts linear[2], maxima[2];
#pragma unroll
    for (int chunk = 0; chunk < Row::chunks; ++chunk) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4& unit = met[half].of[chunk];
        linear[half].add<T>(unit, vector_[chunk]);
        maxima[half].add<T>(larger_of<T>(minus_own_[half].of[chunk], unit), vector_[chunk]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      scores[half] = fmaf(factor_, maxima[half].total(),
                          fmaf(met_factor_, linear[half].total(), linear_[half]));
    }
  }

  __device__ const Row& minus_own(int half) const { return minus_own_[half]; }

 private:
  float factor_, met_factor_;
  MetFeatures vector_[Row::chunks];
  Row minus_own_[2];
  float linear_[2];
};

}  // namespace tessera::ops
