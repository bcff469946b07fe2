// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/blocks_8x8.cuh"
#include "cuda/mma.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// Sums of dS over the columns j of a row i for which x[i] + y[j] > 0, feature by feature, for the
/// 16 rows of a warp. For a row this is the product of a matrix of 0 and 1, features by columns,
/// with a vector: the first operand of a matrix instruction are 16 features and 16 columns, one
/// comparison for two of them, and of the eight columns of the second one has the high and its
/// neighbour the low part of dS. The next 16 features take the next two columns, the others being
/// 0, so that all 64 features of a row are 4 numbers of a lane: with g and q as ever, those of
/// features 16 q + g and 16 q + 8 + g, in two parts each.
namespace tessera::ops {

/// Rows of columns lie in shared memory as `Rows`, `steps` times 16 of them at once; a block has
/// `num_warps` warps.
template <class T, int width, class Rows, int steps, int num_warps>
class MaskSums {
 public:
  static constexpr int num_blocks = width / 16;  ///< of 16 features
  static_assert(num_blocks <= 4);

 private:
  // In shared memory, for each warp: own features, negative and each twice, so that lane g has
  // those of its places in a row; then dS as operands.
  static constexpr int own_row_bytes = width * 4;
  static constexpr int part_bytes =
      16 * 32 + 32;  ///< high or low parts of a step: no banks collide
  static constexpr int step_bytes = 2 * part_bytes;
  static constexpr int own_bytes = 16 * own_row_bytes;
  static constexpr int warp_bytes = own_bytes + steps * step_bytes;

 public:
  static constexpr int bytes = num_warps * warp_bytes;

  __device__ explicit MaskSums(char* shared) : memory_(shared + threadIdx.x / 32 * warp_bytes) {
#pragma unroll
    for (int block = 0; block < num_blocks; ++block) {
      // Not known to be 0 or 1: a multiplication by it runs beside comparisons, a selection among
      // them.
      taken_[block] = lane() / 8 == block ? 1u : 0u;
      asm volatile("" : "+r"(taken_[block]));
    }
  }

  __device__ void clear() {
#pragma unroll
    for (auto& row : sums_) {
#pragma unroll
      for (float& sum : row) sum = 0;
    }
  }

  /// Takes the own rows of the warp: load(row, unit) are eight features.
  template <class Load>
  __device__ void begin(Load&& load) {
#pragma unroll
    for (int i = lane(); i < 16 * Rows::units; i += 32) {
      const int row = i / Rows::units;
      const int unit = i % Rows::units;
      const uint4 features = load(row, unit);
      const std::uint32_t pairs[4] = {features.x, features.y, features.z, features.w};
      char* const to = memory_ + row * own_row_bytes + unit * 4;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        *reinterpret_cast<std::uint32_t*>(to + k * (width / 2)) =
            __byte_perm(pairs[k / 2], 0, k % 2 == 0 ? 0x1010 : 0x3232) ^ 0x80008000u;
      }
    }
  }

  /// dS of a step, as the operand that it would be of a product with its rows.
  __device__ void put(int step, const StepWeights<T>& gradients) {
    char* const to = step_memory(step) + lane() / 4 * 32 + lane() % 4 * 8;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      *reinterpret_cast<uint2*>(to + row * 256) = {gradients.high[row], gradients.high[row + 2]};
      *reinterpret_cast<uint2*>(to + row * 256 + part_bytes) = {gradients.low[row],
                                                                gradients.low[row + 2]};
    }
  }

  /// Which fours of rows have an edge in which steps: bit 4 step + four. `bits` are those of a
  /// tile's pattern.
  __device__ static std::uint32_t used_rows(std::uint32_t bits) {
    bits |= bits >> 16;
    bits |= bits >> 2;
    const int second = lane() / 16;
    return __reduce_or_sync(~0u, (bits & 0x1111u) << second | (bits & 0x2222u) << (1 + second));
  }

  /// Adds what the columns from `columns` on have, whose dS have been put and seen by the warp.
  __device__ void add(std::uint32_t columns, std::uint32_t used) {
#pragma unroll
    for (int four = 0; four < 4; ++four) {
      if ((used & 0x1111u << four) == 0) continue;
      std::uint32_t own[4][width / 8];
#pragma unroll
      for (int i = 0; i < 4; ++i) load_own(own[i], 4 * four + i);
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        if ((used >> (4 * step + four) & 1u) != 0) add_step(columns, step, four, own);
      }
    }
  }

  /// Calls store(row, feature, sum, sum of the next feature) with all sums times a, after `factor`
  /// times each and what the rows of this lane have in `more`; and adds them, times x, to those of
  /// the vector.
  template <class Store>
  __device__ void finish(float factor, const float (&more)[2], const T* vector, Store&& store) {
    const bool exists = lane() % 4 < num_blocks;
    const int g = lane() / 4;
    const int feature = lane() % 4 * 16 + (g % 2 == 0 ? g : 7 + g);
    float a[2] = {0, 0};
    if (exists) {
      a[0] = cuda::widen(vector[feature]);
      a[1] = cuda::widen(vector[feature + 1]);
    }
#pragma unroll
    for (int row = 0; row < 16; ++row) {
      const float added = __shfl_sync(~0u, more[row / 8], row % 8 * 4);
      const float first = fmaf(factor, sums_[row][0] + sums_[row][1], added);
      const float second = fmaf(factor, sums_[row][2] + sums_[row][3], added);
      if (exists) add_to_vector(row, first, second);
      // Neighbours exchange, so that each has two features side by side.
      const float other = __shfl_xor_sync(~0u, g % 2 == 0 ? second : first, 4);
      const float low = g % 2 == 0 ? first : other;
      const float high = g % 2 == 0 ? other : second;
      if (exists) store(row, feature, a[0] * low, a[1] * high);
    }
  }

  /// This warp's part of the gradient of a.
  __device__ void store_vector_sums(float* to) const {
    if (lane() % 4 >= num_blocks) return;
    to[lane() % 4 * 16 + lane() / 4] = vector_sums_[0];
    to[lane() % 4 * 16 + 8 + lane() / 4] = vector_sums_[1];
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ char* step_memory(int step) const { return memory_ + own_bytes + step * step_bytes; }

  /// Feature 8 i + g of a row, negative and twice.
  __device__ void load_own(std::uint32_t (&own)[width / 8], int row) const {
    const char* const from = memory_ + row * own_row_bytes + lane() / 4 * (width / 2);
#pragma unroll
    for (int i = 0; i < width / 8; i += 4) {
      const uint4 some = *reinterpret_cast<const uint4*>(from + 4 * i);
      own[i] = some.x;
      own[i + 1] = some.y;
      own[i + 2] = some.z;
      own[i + 3] = some.w;
    }
  }

  __device__ void add_step(std::uint32_t columns, int step, int four,
                           const std::uint32_t (&own)[4][width / 8]) {
    // Of rows that no edge of the step has dS is 0.
    uint2 gradients[4];
    const char* const from = step_memory(step) + lane() / 4 % 2 * part_bytes + lane() % 4 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      gradients[i] = *reinterpret_cast<const uint2*>(from + (4 * four + i) * 32);
    }
#pragma unroll
    for (int block = 0; block < num_blocks; ++block) {
      std::uint32_t y[4];
      cuda::load_blocks_transposed(y, columns + step * 16 * Rows::row_bytes +
                                          Rows::offset(lane() % 16, 2 * block + lane() / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t a[4] = {
            greater(y[0], own[i][2 * block]), greater(y[2], own[i][2 * block + 1]),
            greater(y[1], own[i][2 * block]), greater(y[3], own[i][2 * block + 1])};
        const std::uint32_t b[2] = {gradients[i].x * taken_[block], gradients[i].y * taken_[block]};
        cuda::multiply_16x8<T>(sums_[4 * four + i], a, b);
      }
    }
  }

  /// 1 where y > -x, else 0, of two pairs: a comparison, which nothing is rounded for.
  __device__ static std::uint32_t greater(std::uint32_t y, std::uint32_t minus_x) {
    using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
    const Pair ones =
        __hgt2(reinterpret_cast<const Pair&>(y), reinterpret_cast<const Pair&>(minus_x));
    return reinterpret_cast<const std::uint32_t&>(ones);
  }

  __device__ void add_to_vector(int row, float first, float second) {
    // A row without edges adds nothing, whatever it is.
    if (first == 0 && second == 0) return;
    const uint2 twice = *reinterpret_cast<const uint2*>(memory_ + row * own_row_bytes +
                                                        lane() / 4 * (width / 2) + lane() % 4 * 8);
    vector_sums_[0] = fmaf(-one_of(twice.x), first, vector_sums_[0]);
    vector_sums_[1] = fmaf(-one_of(twice.y), second, vector_sums_[1]);
  }
  __device__ static float one_of(std::uint32_t twice) {
    const auto bits = static_cast<unsigned short>(twice);
    return cuda::widen(reinterpret_cast<const T&>(bits));
  }

  char* memory_;
  std::uint32_t taken_[num_blocks];  ///< 1 for the features whose columns this lane has
  float sums_[16][4];
  float vector_sums_[2] = {0, 0};
};

}  // namespace tessera::ops
