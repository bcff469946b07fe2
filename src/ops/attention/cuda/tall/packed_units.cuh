// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/windows/number_pairs.cuh"

/// bf16 features as fp16, so that they meet weights of eleven digits. Nothing is lost where fp16
/// has the range: a feature of 2^-24 to 2^6 becomes a normal number when it is multiplied by 2^10,
/// and others by other powers of two.
namespace tessera::ops {

inline constexpr float fp16_unit_scale = 0x1p10f;

/// The power of two that features are multiplied by: exponents of bf16, biased, become less by
/// `lowered` when they become those of fp16.
struct Fp16Scale {
  int lowered = 127 - 15 - 10;

  Fp16Scale() = default;
  /// For features of which the largest is known, by the bits of its size: it comes to lie below
  /// 2^15, and what is up to 2^28 times smaller keeps its digits.
  __device__ explicit Fp16Scale(std::uint32_t largest)
      : lowered(largest >> 7 > 29 ? static_cast<int>(largest >> 7) - 29 : 0) {}

  __device__ static bool is_finite(std::uint32_t largest) { return largest >> 7 < 255; }
  __device__ float factor() const { return power(127 - 15 - lowered); }
  /// For fp32 numbers of which the largest has this exponent, biased.
  __device__ static float factor_for(int exponent) { return power(min(127 + 14 - exponent, 100)); }

 private:
  __device__ static float power(int exponent) {
    return __uint_as_float(static_cast<std::uint32_t>(exponent + 127) << 23);
  }
};

/// Looks after the features of a thread: whether each is 0 or within the range.
class Fp16Range {
 public:
  Fp16Range() = default;
  __device__ explicit Fp16Range(const Fp16Scale& scale) : scale_(scale) {}

  /// Eight features, converted.
  __device__ uint4 convert(const uint4& unit) {
    return {convert(unit.x), convert(unit.y), convert(unit.z), convert(unit.w)};
  }
  /// What they were, if the range holds them.
  __device__ uint4 restore(const uint4& unit) const {
    return {restore(unit.x), restore(unit.y), restore(unit.z), restore(unit.w)};
  }

  __device__ bool holds() const {
    // Exponents 1 to 30 of fp16.
    const auto first = static_cast<std::uint32_t>(scale_.lowered + 31) << 7;
    const auto small = static_cast<std::uint32_t>(scale_.lowered + 1) << 7;
    return (largest_ & 0xffffu) < first && (largest_ >> 16) < first &&
           (smallest_ & 0xffffu) + 1 >= small && (smallest_ >> 16) + 1 >= small;
  }

 private:
  __device__ std::uint32_t restore(std::uint32_t pair) const {
    const float back = 1 / scale_.factor();
    const float2 features = __half22float2(reinterpret_cast<const __half2&>(pair));
    return packed<__nv_bfloat16>(features.x * back, features.y * back);
  }
  /// The same digits behind another exponent.
  __device__ std::uint32_t convert(std::uint32_t pair) {
    const std::uint32_t sizes = pair & 0x7fff7fffu;
    largest_ = __viaddmax_u16x2(sizes, 0, largest_);
    // One less than each, so that 0 is the largest there is.
    smallest_ = __viaddmin_u16x2(sizes, 0xffffffffu, smallest_);
    const auto minus_lowered = static_cast<std::uint32_t>(-scale_.lowered * (1 << 7)) & 0xffffu;
    const std::uint32_t lowered = __viaddmax_s16x2(sizes, minus_lowered * 0x10001u, 0);
    return lowered << 3 | (pair & 0x80008000u);
  }

  Fp16Scale scale_;
  std::uint32_t largest_ = 0;
  std::uint32_t smallest_ = 0xffffffffu;
};

// How lanes and warps share what columns and rows bring to packed factors.

/// Lane 4 g + q has to do with columns 2q and 2q + 1 of a step, in one word, and 2q + 8 and 2q + 9,
/// in the next: where an even column of the tile and its neighbour lie.
struct LaneColumns {
  int at;  ///< 4 step + q
  int word;

  __device__ explicit LaneColumns(int column)
      : at((column >> 2 & ~3) | (column >> 1 & 3)), word(column >> 3 & 1) {
    static_assert(tiles::step_columns == 16);
  }
};
/// Places of a tile, and one more, so that heads do not begin in the same bank.
inline constexpr int lane_places = tiles::tile_columns / 4 + 1;

/// Of the window's own rows a word for every head, those of two heads for rows g and g + 8
/// together. Each warp has its own 16 rows.
template <int heads>
struct OwnWords {
  uint4 pairs[tall_window_threads / 32][heads / 2][8];

  /// Of heads 2 `index` and 2 `index` + 1.
  __device__ uint4& pair(int index) { return pairs[threadIdx.x / 32][index][threadIdx.x % 32 / 4]; }
  __device__ const uint4& pair(int index) const {
    return pairs[threadIdx.x / 32][index][threadIdx.x % 32 / 4];
  }
  __device__ std::uint32_t& word(int h, int row) {
    return reinterpret_cast<std::uint32_t*>(&pair(h / 2))[h % 2 * 2 + row];
  }
};

}  // namespace tessera::ops
