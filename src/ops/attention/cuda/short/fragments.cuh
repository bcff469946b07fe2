// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/mma.cuh"
#include "cuda/softmax.cuh"
#include "ops/windows/number_pairs.cuh"
#include "ops/windows/warp_rows.cuh"

/// What a warp holds of 16 rows of a window and the 16 columns of a step. In products of rows with
/// rows it does not matter in what order features are added, so that 16 bytes of a row are operands
/// as they are. Sums of weighted rows have features as rows and the rows of the window as columns,
/// so that their weights are where the cells have been; bytes of two rows are paired up for them.
///
///     lane 4 g + q has  cells of rows g, g + 8 and columns 2q, 2q + 1, 2q + 8, 2q + 9,
///                       sums of features 8 g to 8 g + 7 and rows 2q, 2q + 1, 2q + 8, 2q + 9
namespace tessera::ops {

/// Cells of a step: `of[i]` are those of columns 8 i on, two of row g, then two of row g + 8.
struct StepCells {
  float of[2][4] = {};

  /// Whether the step has an edge there, by its bits.
  __device__ static bool exists(std::uint32_t bits, int i, int k) {
    return (bits >> (i * 2 + k / 2 + k % 2 * 16) & 1) != 0;
  }

  /// Cells without an edge become -inf, others are multiplied by `unit`; `top` is the largest of
  /// what this lane has of either row.
  __device__ void settle(std::uint32_t bits, float unit, float (&top)[2]) {
    top[0] = top[1] = -cuda::infinity;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        of[i][k] = exists(bits, i, k) ? of[i][k] * unit : -cuda::infinity;
        top[k / 2] = fmaxf(top[k / 2], of[i][k]);
      }
    }
  }

  /// Adds the products of rows of the window with rows of the step: 32 features of rows g and g + 8
  /// of either.
  template <class T>
  __device__ void add_products(const uint4& low, const uint4& high, const uint4 (&met)[2]) {
    const std::uint32_t a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      const std::uint32_t b[2][2] = {{met[block].x, met[block].y}, {met[block].z, met[block].w}};
      cuda::multiply_16x8<T>(of[block], a[0], b[0]);
      cuda::multiply_16x8<T>(of[block], a[1], b[1]);
    }
  }
};

/// The weights of a step as operands, in two parts: of rows 0 to 7, then of the others.
template <class T>
struct StepOperands {
  std::uint32_t high[2][2];
  std::uint32_t low[2][2];

  StepOperands() = default;
  __device__ explicit StepOperands(const StepCells& weights) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const PackedTwice<T> pair(weights.of[i][2 * half], weights.of[i][2 * half + 1]);
        high[half][i] = pair.high;
        low[half][i] = pair.low;
      }
    }
  }
};

/// Sums of weighted rows.
template <class T, int width>
class FeatureSums {
 public:
  static constexpr int chunks = width / 64;

  __device__ void clear() {
    each([](float& sum, int, int) { sum = 0; });
  }
  /// Adds 64 weighted features, of rows 2q, 2q + 1 and of those 8 further on.
  __device__ void add(const StepOperands<T>& weights, int chunk, const uint4 (&rows)[4]) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const std::uint32_t v[4] = {word(rows[0], pair), word(rows[1], pair), word(rows[2], pair),
                                  word(rows[3], pair)};
      const std::uint32_t a[4] = {__byte_perm(v[0], v[1], 0x5410), __byte_perm(v[0], v[1], 0x7632),
                                  __byte_perm(v[2], v[3], 0x5410), __byte_perm(v[2], v[3], 0x7632)};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        cuda::multiply_16x8<T>(sums_[chunk][pair][half], a, weights.low[half]);
        cuda::multiply_16x8<T>(sums_[chunk][pair][half], a, weights.high[half]);
      }
    }
  }
  /// By a number per row: rows 2q and 2q + 1, then those 8 further on.
  __device__ void scale(const float (&factors)[2][2]) {
    each([&](float& sum, int half, int k) { sum *= factors[half][k % 2]; });
  }
  /// Features 64 chunk + 8 g on of row 8 half + 2q + odd.
  __device__ void row(int chunk, int half, int odd, float (&features)[8]) const {
#pragma unroll
    for (int k = 0; k < 8; ++k) features[k] = sums_[chunk][k / 2][half][k % 2 * 2 + odd];
  }

 private:
  __device__ static std::uint32_t word(const uint4& vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
  }
  template <class Visit>
  __device__ void each(Visit&& visit) {
#pragma unroll
    for (auto& of_chunk : sums_) {
#pragma unroll
      for (auto& of_pair : of_chunk) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int k = 0; k < 4; ++k) visit(of_pair[half][k], half, k);
        }
      }
    }
  }

  /// Of features 8 g + 2 i and the next: two rows of the first, then of the second; of rows 2q and
  /// 2q + 1, then of those 8 further on.
  float sums_[chunks][4][2][4];
};

}  // namespace tessera::ops
