// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/attention/cuda/tall/packed.cuh"
#include "tessera/tiles/tiled_graph.hpp"

/// Weights exp(leaky_relu(l[i] + r[j])) as products of a factor of the row and one of the column.
/// Which two is decided by the sign of l + r: in powers of two, with any c,
///
///     l + r >= 0     2^(l + c) 2^(r - c)
///     l + r <  0     2^(slope (l + c)) 2^(slope (r - c))
///
/// So the sum over the edges of a row is 2^(l + c) times the sum of the rows 2^(r - c) V[j] whose
/// sign is plus, and the other factor times that of the rows whose sign is minus. Matrices of signs
/// hold nothing but 0 and one number, so that products with them are exact; what is rounded are the
/// scaled rows, as two bf16 numbers each, and the factors themselves, as three.
namespace tessera::ops {

/// Exponents of factors may lie so far below and above those of some column, which are c: then
/// neither digits nor numbers are lost, of features too unless they are extreme.
inline constexpr float factors_below = 40;
inline constexpr float factors_above = 24;

__device__ inline float leaky_power(float x, float slope) { return x > 0 ? x : slope * x; }

/// The factors of a column, from their exponents.
struct ColumnFactors {
  float own = 1;
  float sloped = 1;

  ColumnFactors() = default;
  __device__ ColumnFactors(float own_exponent, float sloped_exponent)
      : own(power_of_2(own_exponent)), sloped(power_of_2(sloped_exponent)) {}

  __device__ static bool serve(float exponent) {
    return exponent <= factors_above && exponent >= -factors_below;
  }
  /// Three parts of the one, 0, three parts of the other, 0; both times a number.
  __device__ uint4 parts(float number) const {
    const uint2 first = three_parts(own * number);
    const uint2 second = three_parts(sloped * number);
    return {first.x, first.y, second.x, second.y};
  }

 private:
  __device__ static uint2 three_parts(float factor) {
    const std::uint32_t high = __float_as_uint(factor) & 0xffff0000u;
    const PackedTwice<__nv_bfloat16> low(factor - __uint_as_float(high), 0.0f);
    return {high >> 16 | low.high << 16, low.low & 0xffffu};
  }
};

/// Whether features keep the digits of both of their parts when they are multiplied by factors that
/// serve, and their sums stay finite: each is 0 or of 2^-76 to 2^76.
class FeatureRange {
 public:
  __device__ void add(float feature) {
    const std::uint32_t size = __float_as_uint(feature) & 0x7fffffffu;
    largest_ = largest_ > size ? largest_ : size;
    // One less, so that 0 is the largest there is.
    smallest_ = __viaddmin_u32(size, 0xffffffffu, smallest_);
  }
  __device__ bool holds() const {
    constexpr std::uint32_t most = (127u + 76) << 23;
    constexpr std::uint32_t least = (127u - 76) << 23;
    return largest_ <= most && smallest_ >= least - 1;
  }

 private:
  std::uint32_t largest_ = 0;
  std::uint32_t smallest_ = 0xffffffffu;
};

/// A tile in shared memory, as the products want it.
template <class T, int width, int features, bool has_shifts>
struct alignas(16) ScaledTile {
  static constexpr int columns = tiles::tile_columns;
  static constexpr int units = features / 8;
  static constexpr int heads = width < features ? features / width : 1;
  /// Per column and eight features: the row times the one factor, rounded, what that lost, and the
  /// same for the other. An odd number of units of 16 bytes: eight rows lie in different banks.
  static constexpr int stride = 4 * units + 1;

  uint4 rows[columns * stride];
  uint4 parts[heads][columns];  ///< of factors
  float r[heads][columns];
  float shift[has_shifts ? heads : 1][has_shifts ? columns : 1];
  float2 c[heads];  ///< of the one factor and the other

  /// Eight features as they lie in memory.
  struct Unit {
    using Vector = cuda::Vector<T, 16>;
    static constexpr int count = 8 / Vector::count;
    uint4 vectors[count];

    __device__ void widen(float (&values)[8]) const {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        float some[Vector::count];
        Vector{vectors[i]}.widen_to(some);
#pragma unroll
        for (int k = 0; k < Vector::count; ++k) values[i * Vector::count + k] = some[k];
      }
    }
  };

  /// Returns whether the factors serve for these features.
  __device__ bool put_scaled(int column, int unit, const Unit& from, const ColumnFactors& factors) {
    float values[8];
    from.widen(values);
    uint4* const to = rows + column * stride + unit * 4;
    put_pair(to, values, factors.own);
    put_pair(to + 2, values, factors.sloped);
    FeatureRange range;
#pragma unroll
    for (const float value : values) range.add(value);
    return range.holds();
  }
  __device__ void put_unscaled(int column, int unit, const Unit& from) {
    float values[8];
    from.widen(values);
    put_pair(rows + column * stride + unit * 4, values, 1.0f);
  }

  /// The operands of a step and a unit: of the one factor (`sloped` 0) or the other, the rounded
  /// rows in blocks 0 and 1, what they lost in 2 and 3.
  __device__ void load_rows(std::uint32_t (&blocks)[4], int step, int unit, int sloped) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = step * tiles::step_columns + lane % 16;
    cuda::load_blocks_transposed(
        blocks, cuda::shared_address(rows + row * stride + unit * 4 + sloped * 2 + lane / 16));
  }
  /// The parts of a step's factors as an operand, in blocks 0 and 1.
  __device__ void load_parts(std::uint32_t (&blocks)[4], int step, int head) const {
    const int row = step * tiles::step_columns + static_cast<int>(threadIdx.x) % 16;
    cuda::load_blocks_transposed(blocks, cuda::shared_address(&parts[head][row]));
  }

 private:
  __device__ static void put_pair(uint4* to, const float (&values)[8], float factor) {
    uint4 high, low;
    split(values[0] * factor, values[1] * factor, high.x, low.x);
    split(values[2] * factor, values[3] * factor, high.y, low.y);
    split(values[4] * factor, values[5] * factor, high.z, low.z);
    split(values[6] * factor, values[7] * factor, high.w, low.w);
    to[0] = high;
    to[1] = low;
  }
  __device__ static void split(float even, float odd, std::uint32_t& high, std::uint32_t& low) {
    const PackedTwice<__nv_bfloat16> pair(even, odd);
    high = pair.high;
    low = pair.low;
  }
};

}  // namespace tessera::ops
