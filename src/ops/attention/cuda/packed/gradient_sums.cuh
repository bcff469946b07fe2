// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/packed/fp16_units.cuh"
#include "ops/attention/cuda/packed/gradient_columns.cuh"
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/gathered_windows.cuh"

namespace tessera::ops {

/// What the backward pass of GAT with narrow heads (gradient.cuh) adds up over a window, and the
/// factors of its own rows that come out of these sums.
template <class Pass, int width, bool by_rows>
class PackedGradientSums
    : public GatheredWindows<Pass, __nv_bfloat16, width, 1, 0,
                             PackedColumns<packed_gradient_features / width, by_rows>, 3,
                             packed_gradient_features / width> {
 protected:
  using T = __nv_bfloat16;
  using Windows = GatheredWindows<Pass, T, width, 1, 0,
                                  PackedColumns<packed_gradient_features / width, by_rows>, 3,
                                  packed_gradient_features / width>;

 public:
  using Windows::heads;

 protected:
  static_assert(heads % 4 == 0);
  static constexpr int groups = heads / 4;
  static constexpr int num_sides = by_rows ? 1 : 2;  ///< with a plus, with a minus
  using Sides = SideTerms<T>;
  using typename Windows::Rows;
  using Windows::first_head, Windows::first_row, Windows::lane, Windows::launch_, Windows::units;

  /// What is there once. Terms of the window's own rows as they were given, each twice in a word:
  /// of two heads, rows g and g + 8. Each warp has its own.
  struct Own {
    uint4 terms[tall_attention_threads / 32][heads / 2][8];
    /// By rows, per head: ones in its column of an operand of numbers.
    uint2 ones[by_rows ? heads : 1][8];
  };

 public:
  static constexpr int shared_bytes = Windows::shared_bytes + static_cast<int>(sizeof(Own));

  __device__ PackedGradientSums(const TallAttentionLaunch& launch, char* shared)
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
    this->expect_rows(launch_.own_values, launch_.own_values_stride, rows);
    if constexpr (by_rows) {
      this->expect_rows(launch_.own_output, launch_.own_output_stride, rows);
    }
    // Numbers of neighbouring rows lie side by side.
    if (lane() != 0 || first_row() >= rows.count) return;
    const std::int64_t row = std::int64_t{rows.first} + first_row();
    cuda::expect_in_l2(static_cast<const T*>(launch_.target) + row * launch_.target_stride +
                       first_head());
    if constexpr (by_rows) {
      cuda::expect_in_l2(launch_.log_sum + row * launch_.log_sum_stride + first_head());
    }
  }

 protected:
  // The two rows of this lane.

  __device__ static int place_of(int row) { return first_row() + lane() / 4 + 8 * row; }
  __device__ void set_rows(const tiles::Piece& piece) {
    row_ = std::int64_t{piece.first_row} + place_of(0);
    num_rows_ = piece.num_rows;
  }
  __device__ bool exists(int h, int row) const {
    return place_of(row) < num_rows_ && first_head() + h < launch_.heads;
  }
  __device__ Own& own() const {
    return *reinterpret_cast<Own*>(this->shared_ + Windows::shared_bytes);
  }
  __device__ uint4& own_words(int pair) const {
    return own().terms[threadIdx.x / 32][pair][lane() / 4];
  }
  __device__ std::uint32_t& own_word(int h, int row) const {
    return reinterpret_cast<std::uint32_t*>(&own_words(h / 2))[h % 2 * 2 + row];
  }
  /// Puts what was asked for where all lanes find it; returns whether its factors serve.
  __device__ bool take_own() {
    bool serve = true;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int h = i / 2 * 4 + lane() % 4;
      const float term = cuda::widen(asked_terms_[i]);
      own_word(h, i % 2) = packed<T>(term, term);
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
  __device__ float own_term(int h, int row) const { return Sides::term_of(own_word(h, row)); }
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

  /// Of an operand of numbers, that of a head by rows, where they are 1.
  __device__ static constexpr int number_column(int h) { return h % 4 * 2 + h / 4; }
  static constexpr int number_sums = by_rows ? 1 : groups;

  std::int64_t row_;  ///< row g of this lane
  std::int32_t num_rows_;
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
