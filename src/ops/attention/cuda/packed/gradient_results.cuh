// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/packed/gradient_sums.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"

namespace tessera::ops {

/// The gradients that the sums of a window become.
template <class Pass, int width, bool by_rows>
class PackedGradientResults : public PackedGradientSums<Pass, width, by_rows> {
  using Sums = PackedGradientSums<Pass, width, by_rows>;

 protected:
  using Sums::all_features, Sums::begins_, Sums::by_exponentials_, Sums::exists, Sums::features,
      Sums::first_feature, Sums::first_head, Sums::groups, Sums::lane, Sums::largest_d_,
      Sums::largest_features_, Sums::launch_, Sums::num_rows_, Sums::num_sides, Sums::numbers_,
      Sums::own_factor, Sums::own_log_sum, Sums::own_term, Sums::place_of, Sums::row_,
      Sums::row_factor, Sums::rows_, Sums::set_rows, Sums::take_own, Sums::take_own_factors,
      Sums::units;
  using typename Sums::T;

 public:
  using Sums::heads;
  using Sums::Sums;

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

 private:
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
      if (place_of(row) < num_rows_) from += (row_ + 8 * row) * stride;
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
    const GradientMatrix matrices[1] = {
        {launch_.score_gradient, launch_.score_gradient_stride, 1.0f,
         BlockColumns(first_head(), heads, static_cast<int>(launch_.heads))}};
    const GradientResults<T, 1> results(launch_, matrices);
    const float of_rows = row_factor();
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
      const float log_sum = own_log_sum(h, row);
      const float factor = by_exponentials_ ? 1.0f : own_factor(h, row, 0);
      results.store(
          piece, 0, place_of(row), h,
          (1 - launch_.slope) * factor * (dot * of_rows - d * numbers_[0][0][2 * row + group]));
      largest_d_ = max(largest_d_, __float_as_uint(d) & 0x7fffffffu);
      PackedRowState(own_term(h, row), log_sum, launch_.slope, d)
          .store(static_cast<PackedRowState*>(launch_.row_state) +
                 (row_ + 8 * row) * launch_.heads + first_head() + h);
    }
    results.finish(piece);
  }

  __device__ void finish_sources(const tiles::Piece& piece) {
    OwnRows values;
    load(values, launch_.own_values, launch_.own_values_stride);
    GradientMatrix matrices[2] = {
        {launch_.score_gradient, launch_.score_gradient_stride, 1.0f,
         BlockColumns(first_head(), heads, static_cast<int>(launch_.heads)), all_features()},
        {launch_.output, launch_.output_stride, 1.0f,
         BlockColumns(first_feature(), features, all_features())}};
    const GradientResults<T, 2> results(launch_, matrices);
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
};

}  // namespace tessera::ops
