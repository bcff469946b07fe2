// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat_gradient.cuh"
#include "ops/attention/cuda/tall/packed_gradient_columns.cuh"
#include "ops/attention/cuda/tall/packed_units.cuh"

namespace tessera::ops {

/// All passes over packed factors have the heads of so many features in a block.
template <class Pass, int width, bool by_rows>
using PackedWindows = GatGradient<Pass, __nv_bfloat16, width, by_rows,
                                  PackedColumns<packed_gradient_features / width, by_rows>, 3,
                                  packed_gradient_features / width>;

/// What the backward pass of GAT with narrow heads (packed_gradient.cuh) adds up over a window, the
/// factors of its own rows that come out of these sums, and the gradients that they become.
template <class Pass, int width, bool by_rows>
class PackedGradientSums : public PackedWindows<Pass, width, by_rows> {
 protected:
  using T = __nv_bfloat16;
  using Windows = PackedWindows<Pass, width, by_rows>;

 public:
  using Windows::heads;

 protected:
  static_assert(heads % 4 == 0);
  static constexpr int groups = heads / 4;
  using Sides = SideTerms<T>;
  using typename Windows::Rows;
  using Windows::all_features, Windows::features, Windows::first_feature, Windows::first_head,
      Windows::first_row, Windows::lane, Windows::launch_, Windows::num_rows_, Windows::num_sides,
      Windows::place_of, Windows::row_, Windows::set_rows, Windows::units;

  /// What is there once.
  struct Own {
    OwnWords<heads> terms;  ///< as they were given, each twice in a word
    /// By rows, per head: ones in its column of an operand of numbers.
    uint2 ones[by_rows ? heads : 1][8];
  };

 public:
  static constexpr int shared_bytes = Windows::shared_bytes + static_cast<int>(sizeof(Own));

  __device__ PackedGradientSums(const WindowsLaunch& launch, char* shared)
      : Windows(launch, shared) {
    if constexpr (!by_rows) {
      row_scale_ = Fp16Scale(launch.largest[0]);
      const std::uint32_t exponent = launch.largest[1] >> 23;
      d_factor_ = Fp16Scale::factor_for(static_cast<int>(exponent));
      never_fp16_ = !Fp16Scale::is_finite(launch.largest[0]) || exponent == 255;
    } else if (threadIdx.x < heads * 8) {
      const int h = static_cast<int>(threadIdx.x / 8);
      const std::uint32_t one =
          static_cast<int>(threadIdx.x % 8) == number_column(h) ? packed<__half>(1.0f, 1.0f) : 0;
      own().ones[h][threadIdx.x % 8] = {one, one};
    }
  }

  /// What is asked for of the own rows is looked at with the first tile.
  __device__ void begin_piece(const tiles::Piece& piece) {
    set_rows(piece);
    begins_ = true;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int h = i / 2 * 4 + lane() % 4;
      const int row = i % 2;
      asked_terms_[i] = cuda::narrow<T>(0.0f);
      asked_log_sums_[i] = 0;
      if (!exists(h, row)) continue;
      asked_terms_[i] = static_cast<const T*>(
          launch_.target)[(row_ + 8 * row) * launch_.target_stride + first_head() + h];
      if constexpr (by_rows) asked_log_sums_[i] = own_log_sum(h, row);
    }
    by_exponentials_ = never_fp16_;
    has_sums_ = false;
#pragma unroll
    for (int i = 0; i < num_sides * heads * units * 4; ++i) {
      rows_[i / (heads * units * 4)][i / (units * 4) % heads][i / 4 % units][i % 4] = 0;
    }
#pragma unroll
    for (int i = 0; i < num_sides * number_sums * 4; ++i) {
      numbers_[i / (number_sums * 4)][i / 4 % number_sums][i % 4] = 0;
    }
  }

  __device__ void expect(const WindowRows& rows) const {
    Windows::expect(rows);
    // Numbers of neighbouring rows lie side by side.
    if (lane() != 0 || first_row() >= rows.count) return;
    const std::int64_t row = std::int64_t{rows.first} + first_row();
    cuda::expect_in_l2(static_cast<const T*>(launch_.target) + row * launch_.target_stride +
                       first_head());
    if constexpr (by_rows) {
      cuda::expect_in_l2(launch_.log_sum + row * launch_.log_sum_stride + first_head());
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    set_rows(piece);
    if (begins_) {
      take_own();
      // Sums of no edges are 0 whatever the terms: a factor of theirs may be infinite.
      by_exponentials_ = true;
    }
    if constexpr (by_rows) {
      finish_targets(piece);
    } else {
      finish_sources(piece);
    }
  }

  __device__ void end() const {
    if constexpr (by_rows) {
      const std::uint32_t feature =
          __reduce_max_sync(~0u, max(largest_features_ & 0xffffu, largest_features_ >> 16));
      const std::uint32_t d = __reduce_max_sync(~0u, largest_d_);
      if (lane() != 0) return;
      atomicMax(launch_.largest, feature);
      atomicMax(launch_.largest + 1, d);
    }
  }

 protected:
  // The two rows of this lane.

  __device__ bool exists(int h, int row) const {
    return Windows::exists(row) && first_head() + h < launch_.heads;
  }
  __device__ Own& own() const {
    return *reinterpret_cast<Own*>(this->shared_ + Windows::shared_bytes);
  }
  /// Puts what was asked for where all lanes find it; returns whether its factors serve.
  __device__ bool take_own() {
    bool serve = true;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int h = i / 2 * 4 + lane() % 4;
      const float term = cuda::widen(asked_terms_[i]);
      own().terms.word(h, i % 2) = packed<T>(term, term);
#pragma unroll
      for (int side = 0; side < num_sides; ++side) {
        const float exponent = own_exponent(term * log2_of_e, asked_log_sums_[i], side);
        serve = serve && !is_extreme_own_exponent(exponent);
      }
    }
    __syncwarp();
    begins_ = false;
    return serve;
  }
  /// In powers of two.
  __device__ float own_term(int h, int row) const {
    return Sides::term_of(own().terms.word(h, row));
  }
  __device__ float own_log_sum(int h, int row) const {
    return log2_of_e *
           launch_.log_sum[(row_ + 8 * row) * launch_.log_sum_stride + first_head() + h];
  }
  /// Of what the sums of a row are multiplied by; 0 by rows where the row has no edges.
  __device__ float own_exponent(float term, float log_sum, int side) const {
    if constexpr (by_rows) {
      return log_sum == -cuda::infinity ? 0 : term - log_sum;
    } else {
      return side == 0 ? term : launch_.slope * term;
    }
  }
  /// The factor itself with that of fp16, of a row that exists.
  __device__ float own_factor(int h, int row, int side) const {
    const float log_sum = by_rows ? own_log_sum(h, row) : 0;
    return power_of_2(own_exponent(own_term(h, row), log_sum, side)) * packed_factor_unit;
  }
  /// What sums of rows and numbers are multiplied by besides.
  __device__ float row_factor() const { return by_exponentials_ ? 1 : 1 / row_scale_.factor(); }
  __device__ float number_factor() const { return by_rows || by_exponentials_ ? 1 : 1 / d_factor_; }

  /// From now on sums are of weights times features.
  __device__ void take_own_factors() {
    const float of_rows = row_factor();
    const float of_numbers = number_factor();
#pragma unroll
    for (int i = 0; i < num_sides * 2 * heads; ++i) {
      const int side = i / (2 * heads);
      const int h = i / 2 % heads;
      const int row = i % 2;
      const float factor = exists(h, row) ? own_factor(h, row, side) : 0;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        // One after the other: their product may be out of range.
        rows_[side][h][unit][2 * row] = rows_[side][h][unit][2 * row] * factor * of_rows;
        rows_[side][h][unit][2 * row + 1] = rows_[side][h][unit][2 * row + 1] * factor * of_rows;
      }
    }
#pragma unroll
    for (int i = 0; i < num_sides * 2 * groups; ++i) {
      const int side = i / (2 * groups);
      const int group = i / 2 % groups;
      const int row = i % 2;
      const int h = group * 4 + lane() % 4;
      const float factor = exists(h, row) ? own_factor(h, row, side) : 0;
      if constexpr (by_rows) {
        numbers_[0][0][2 * row + group] *= factor;
      } else {
        numbers_[side][group][2 * row] = numbers_[side][group][2 * row] * factor * of_numbers;
        numbers_[side][group][2 * row + 1] =
            numbers_[side][group][2 * row + 1] * factor * of_numbers;
      }
    }
  }

  // Gradients.

  /// Of four numbers the q-th, summed over the four lanes of a row.
  __device__ static float over_lanes(const float (&numbers)[4]) {
    const bool upper = lane() % 4 >= 2;
    const bool odd = lane() % 2 == 1;
    float kept[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float sent = upper ? numbers[i] : numbers[i + 2];
      kept[i] = (upper ? numbers[i + 2] : numbers[i]) + __shfl_xor_sync(~0u, sent, 2);
    }
    const float sent = odd ? kept[0] : kept[1];
    return (odd ? kept[1] : kept[0]) + __shfl_xor_sync(~0u, sent, 1);
  }

  /// This lane's two of every eight features of its rows; of what does not exist it is anything.
  struct OwnRows {
    std::uint32_t pairs[2][heads * units];
  };
  __device__ void load(OwnRows& rows, const void* matrix, std::int64_t stride) const {
    const int left = all_features() - first_feature();
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const T* from = static_cast<const T*>(matrix) + first_feature() + lane() % 4 * 2;
      if (Windows::exists(row)) from += (row_ + 8 * row) * stride;
#pragma unroll
      for (int unit = 0; unit < heads * units; ++unit) {
        const int feature = left >= features ? unit * 8 : min(unit * 8, left - 8);
        rows.pairs[row][unit] = *reinterpret_cast<const std::uint32_t*>(from + feature);
      }
    }
  }
  /// Adds the product of a pair of features with sums.
  __device__ static float add_product(float dot, std::uint32_t pair, float low, float high) {
    const float2 features = unpacked<T>(pair);
    return fmaf(features.x, low, fmaf(features.y, high, dot));
  }

  __device__ void finish_targets(const tiles::Piece& piece) {
    OwnRows of_gradient, of_output;
    load(of_gradient, launch_.own_values, launch_.own_values_stride);
    load(of_output, launch_.own_output, launch_.own_output_stride);
    const auto results = this->results();
    // Before they meet gradients: of large ones the products with sums of factors are infinite.
    if (!by_exponentials_) take_own_factors();
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int group = i / 2;
      const int row = i % 2;
      float dots[4] = {};
      float ds[4] = {};
#pragma unroll
      for (int k = 0; k < 4 * units; ++k) {
        const int unit = group * 4 * units + k;
        const std::uint32_t pair = of_gradient.pairs[row][unit];
        const float* const sums = rows_[0][unit / units][unit % units] + 2 * row;
        const float2 output = unpacked<T>(of_output.pairs[row][unit]);
        dots[k / units] = add_product(dots[k / units], pair, sums[0], sums[1]);
        ds[k / units] = add_product(ds[k / units], pair, output.x, output.y);
        largest_features_ = __vmaxu2(largest_features_, pair & 0x7fff7fffu);
      }
      const float dot = over_lanes(dots);
      const float d = over_lanes(ds);
      const int h = group * 4 + lane() % 4;
      if (!exists(h, row)) continue;
      results.row(piece, 0, place_of(row))
          .store(h, (1 - launch_.slope) * (dot - d * numbers_[0][0][2 * row + group]));
      largest_d_ = max(largest_d_, __float_as_uint(d) & 0x7fffffffu);
      PackedRowState(own_term(h, row), own_log_sum(h, row), launch_.slope, d)
          .store(static_cast<PackedRowState*>(launch_.row_state) +
                 (row_ + 8 * row) * launch_.heads + first_head() + h);
    }
    results.finish(piece);
  }

  __device__ void finish_sources(const tiles::Piece& piece) {
    OwnRows values;
    load(values, launch_.own_values, launch_.own_values_stride);
    const auto results = this->results();
    // Sums of weights times features and D.
    if (!by_exponentials_) take_own_factors();
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const auto value_row = results.row(piece, 1, place_of(row));
      const auto score_row = results.row(piece, 0, place_of(row));
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        float dots[4] = {};
#pragma unroll
        for (int k = 0; k < 4 * units; ++k) {
          const int unit = group * 4 * units + k;
          const float* const plus = rows_[0][unit / units][unit % units] + 2 * row;
          const float* const minus = rows_[num_sides - 1][unit / units][unit % units] + 2 * row;
          dots[k / units] = add_product(dots[k / units], values.pairs[row][unit],
                                        fmaf(launch_.slope, minus[0], plus[0]),
                                        fmaf(launch_.slope, minus[1], plus[1]));
          value_row.store(unit * 8 + lane() % 4 * 2, plus[0] + minus[0], plus[1] + minus[1]);
        }
        const float dot = over_lanes(dots);
        // The high and the low part of D stand side by side.
        const float* const plus = numbers_[0][group] + 2 * row;
        const float* const minus = numbers_[num_sides - 1][group] + 2 * row;
        score_row.store(group * 4 + lane() % 4,
                        dot - (plus[0] + plus[1]) - launch_.slope * (minus[0] + minus[1]));
      }
    }
    results.finish(piece);
  }

  /// Of an operand of numbers, that of a head by rows, where they are 1.
  __device__ static constexpr int number_column(int h) { return h % 4 * 2 + h / 4; }
  static constexpr int number_sums = by_rows ? 1 : groups;

  Fp16Scale row_scale_;
  float d_factor_ = 1;
  bool never_fp16_ = false;
  bool begins_ = false;  ///< a piece
  T asked_columns_[by_rows ? Rows::share : 1];
  T asked_terms_[2 * groups];
  float asked_log_sums_[2 * groups];
  bool by_exponentials_ = false;
  bool has_sums_ = false;
  bool converted_ = false;  ///< whether what this thread brought of the tile is fp16
  std::uint32_t largest_features_ = 0;
  std::uint32_t largest_d_ = 0;
  float rows_[num_sides][heads][units][4];
  float numbers_[num_sides][number_sums][4];
};

}  // namespace tessera::ops
