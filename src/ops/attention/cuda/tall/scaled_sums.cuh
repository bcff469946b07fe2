// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/mma.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/cuda/exponentials.cuh"
#include "ops/windows/edge_weights.cuh"
#include "ops/windows/number_pairs.cuh"
#include "tessera/tiles/tiled_graph.hpp"

/// What a warp sums up of 32 rows of a window: two blocks of 16, of which lane 4 g + q has to do
/// with rows g and g + 8.
namespace tessera::ops {

// Weights exp(leaky_relu(l[i] + r[j])) as products of a factor of the row and one of the column.
// Which two is decided by the sign of l + r: in powers of two, with any c,
//
//     l + r >= 0     2^(l + c) 2^(r - c)
//     l + r <  0     2^(slope (l + c)) 2^(slope (r - c))
//
// So the sum over the edges of a row is 2^(l + c) times the sum of the rows 2^(r - c) V[j] whose
// sign is plus, and the other factor times that of the rows whose sign is minus. Matrices of signs
// hold nothing but 0 and one number, so that products with them are exact; what is rounded are the
// scaled rows, as two bf16 numbers each, and the factors themselves, as three.

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
    const PackedTwice<__nv_bfloat16> pairs[4] = {{values[0] * factor, values[1] * factor},
                                                 {values[2] * factor, values[3] * factor},
                                                 {values[4] * factor, values[5] * factor},
                                                 {values[6] * factor, values[7] * factor}};
    to[0] = {pairs[0].high, pairs[1].high, pairs[2].high, pairs[3].high};
    to[1] = {pairs[0].low, pairs[1].low, pairs[2].low, pairs[3].low};
  }
};

/// Which cells of 16 rows and the 16 columns of a step have an edge and a plus, and which a minus,
/// as operands: `sign_unit` or 0.
struct SignCells {
  std::uint32_t plus[4];
  std::uint32_t minus[4];

  /// The number that marks a cell: one bit of the exponent.
  static constexpr float unit = 2;
  static constexpr std::uint32_t unit_bits = 0x40004000u;

  /// `bits`: those of the step, from bit 0 on (edge_weights.cuh); 0 - l of the rows; r of columns
  /// 2q, 2q + 1 and of those 8 further on. What is 0 has a minus.
  __device__ SignCells(std::uint32_t bits, const float (&minus_l)[2], const float2 (&r)[2]) {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const float even = minus_l[place % 2] - r[place / 2].x;
      const float odd = minus_l[place % 2] - r[place / 2].y;
      const std::uint32_t positive = signs_over_halves(even, odd);
      const std::uint32_t edges = bits << (14 - place);
      plus[place] = edges & positive & unit_bits;
      minus[place] = edges & ~positive & unit_bits;
    }
  }
};

/// The sums of one head and 16 rows: of `groups` groups of eight scaled features, and of the
/// factors themselves, whose parts stand in columns 0 to 2 and, for the other factor, 4 to 6.
template <int groups>
struct SignedSums {
  float plus[groups][4];
  float minus[groups][4];
  float plus_weights[4];
  float minus_weights[4];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int group = 0; group < groups; ++group) plus[group][i] = minus[group][i] = 0;
      plus_weights[i] = minus_weights[i] = 0;
    }
  }

  /// The sums of one row, which are of one factor each until then.
  __device__ void scale_row(int row, float own, float sloped) {
#pragma unroll
    for (int i = 2 * row; i < 2 * row + 2; ++i) {
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        plus[group][i] *= own;
        minus[group][i] *= sloped;
      }
      plus_weights[i] *= own;
      minus_weights[i] *= sloped;
    }
  }

  __device__ void add_weights(const SignCells& cells, std::uint32_t b0, std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<__nv_bfloat16>(plus_weights, cells.plus, b);
    cuda::multiply_16x8<__nv_bfloat16>(minus_weights, cells.minus, b);
  }
  __device__ void add(int group, const SignCells& cells, const std::uint32_t (&own)[4],
                      const std::uint32_t (&sloped)[4]) {
    multiply(plus[group], cells.plus, own[0], own[1]);
    multiply(minus[group], cells.minus, sloped[0], sloped[1]);
    multiply(plus[group], cells.plus, own[2], own[3]);
    multiply(minus[group], cells.minus, sloped[2], sloped[3]);
  }
  /// Weights that are no factors, with rows that are not scaled: on one side.
  __device__ static void add_unscaled(float (&to)[4], const StepWeights<__nv_bfloat16>& weights,
                                      const std::uint32_t (&rows)[4]) {
    multiply(to, weights.low, rows[0], rows[1]);
    multiply(to, weights.high, rows[2], rows[3]);
    multiply(to, weights.high, rows[0], rows[1]);
  }
  __device__ static void add_unscaled_weights(float (&to)[4],
                                              const StepWeights<__nv_bfloat16>& weights,
                                              const std::uint32_t (&parts)[4]) {
    multiply(to, weights.low, parts[0], parts[1]);
    multiply(to, weights.high, parts[0], parts[1]);
  }

  /// The sums of the weights of a row on either side; all four lanes of the row get them.
  __device__ float plus_total(int row) const {
    const float sum = plus_weights[2 * row] + plus_weights[2 * row + 1];
    return over_lanes(threadIdx.x % 4 < 2 ? sum : 0.0f);
  }
  __device__ float minus_total(int row) const {
    const float sum = minus_weights[2 * row] + minus_weights[2 * row + 1];
    return over_lanes(threadIdx.x % 4 < 2 ? 0.0f : sum);
  }
  /// Whether a row has an edge, where sums of weights are sums of factors: these are not 0.
  __device__ bool has_edges(int row) const {
    const bool holds_plus = threadIdx.x % 4 < 2;
    const float first = holds_plus ? plus_weights[2 * row] : minus_weights[2 * row];
    const float second = holds_plus ? plus_weights[2 * row + 1] : minus_weights[2 * row + 1];
    const bool own = !(first == 0 && second == 0);
    const unsigned mask = __ballot_sync(~0u, own);
    return (mask >> (threadIdx.x % 32 & ~3u) & 0xfu) != 0;
  }

 private:
  __device__ static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<__nv_bfloat16>(sums, a, b);
  }
};

}  // namespace tessera::ops
