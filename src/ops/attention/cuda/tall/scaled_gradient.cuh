// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/scaled_windows.cuh"

/// The backward pass of GAT over windows of 64 rows or columns. No edge needs a product of its own:
/// with P the weights, s the slope, and sums over edges with a plus or a minus (scaled_sums.cuh),
///
///     D[i]  = dO[i] . O[i]
///     dl[i] = sum of P (dO[i] . V[j] - D[i]) or s times that
///           = (1 - s) (dO[i] . sum+ P V[j]  -  D[i] sum+ P)          as all P of a row make 1
///     dV[j] = sum+ P dO[i] + sum- P dO[i]
///     dr[j] = V[j] . (sum+ P dO[i] + s sum- P dO[i])  -  sum+ P D[i]  -  s sum- P D[i]
///
/// so that a sweep over rows and one over columns are what the forward pass is. P is relative to
/// `log_sum`, of the own vertex in the sweep over rows, of the gathered ones in the other.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class ScaledGradient : public ScaledWindows<ScaledGradient<T, width, by_rows>, T, width, !by_rows> {
  using Base = ScaledWindows<ScaledGradient<T, width, by_rows>, T, width, !by_rows>;
  friend Base;
  using Base::failing_, Base::first_feature_, Base::first_head, Base::first_row, Base::first_unit;
  using Base::head_units, Base::heads, Base::minus_l_, Base::lane, Base::launch_, Base::piece_;
  using Base::sums_, Base::tile_of, Base::warp_heads;
  using typename Base::Sums, typename Base::Tile;
  static_assert(width <= Base::warp_units * 8, "a head belongs to one warp");

 public:
  using Base::Base, Base::block_features;

 private:
  /// Numbers of a row and head: dO . sum+ P V, sum+ P and D; or dr alone.
  static constexpr int numbers = by_rows ? 3 : 1;
  /// Above this a factor is of edges that there are none of: P is at most 1.
  static constexpr float largest_exponent = 64;

  __device__ std::int64_t row_of(int block, int row) const {
    return std::int64_t{piece_.first_row} + place_of_row(block, row);
  }
  __device__ static int place_of_row(int block, int row) {
    return first_row() + block * 16 + row * 8 + lane() / 4;
  }
  __device__ int head_of(int h) const { return first_feature_ / width + first_head() + h; }
  __device__ bool exists(int h, int block, int row) const {
    return place_of_row(block, row) < piece_.num_rows && head_of(h) < launch_.heads;
  }

  /// What P is relative to, of the own vertex; 0 by columns, where it is part of the factors.
  __device__ float own_shift(int h, int block, int row) const {
    if (!by_rows || !exists(h, block, row)) return 0;
    return __ldg(launch_.log_sum + row_of(block, row) * launch_.log_sum_stride + head_of(h)) *
           log2_of_e;
  }

  /// From now on sums are of P itself.
  __device__ void fold_all(int turn) {
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
      const float2 c = tile_of(turn).c[first_head() + h];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float minus_l = minus_l_[h][i / 2][i % 2];
        const float shift = own_shift(h, i / 2, i % 2);
        sums_[h][i / 2].scale_row(i % 2, factor_of(c.x - minus_l - shift),
                                  factor_of(c.y - launch_.slope * minus_l - shift));
      }
    }
  }
  __device__ static float factor_of(float exponent) {
    return exponent > largest_exponent ? 0.0f : power_of_2(exponent) / SignCells::unit;
  }

  /// Every cell by its own exponential.
  __device__ void add_unscaled(int turn, const std::uint32_t (&bits)[2], int num_steps) {
    const Tile& tile = tile_of(turn);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const float shifts[2] = {own_shift(h, block, 0), own_shift(h, block, 1)};
#pragma unroll 1
        for (int step = 0; step < num_steps; ++step) {
          const StepPattern cells(TilePattern{bits[block]}, step);
          if (!cells.has_edges()) continue;
          add_unscaled_step<true>(h, block, tile, step, cells, shifts);
          add_unscaled_step<false>(h, block, tile, step, cells, shifts);
        }
      }
    }
  }
  /// The cells with a plus or a minus.
  template <bool plus>
  __device__ void add_unscaled_step(int h, int block, const Tile& tile, int step,
                                    const StepPattern& cells, const float (&shifts)[2]) {
    StepWeights<__nv_bfloat16> weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      float pair[2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const float raw = tile.r[first_head() + h][column + odd] - minus_l_[h][block][place % 2];
        float shift = shifts[place % 2];
        if constexpr (!by_rows) shift = tile.shift[first_head() + h][column + odd];
        const float weight = power_of_2(leaky_power(raw, launch_.slope) - shift);
        const bool here = plus ? raw > 0 : !(raw > 0);
        pair[odd] = here ? cells.masked(weight, place, odd) : 0.0f;
      }
      weights.set(place, pair[0], pair[1]);
    }
    Sums& sums = sums_[h][block];
    std::uint32_t parts[4];
    tile.load_parts(parts, step, first_head() + h);
    Sums::add_unscaled_weights(plus ? sums.plus_weights : sums.minus_weights, weights, parts);
#pragma unroll
    for (int group = 0; group < head_units; ++group) {
      std::uint32_t rows[4];
      tile.load_rows(rows, step, first_unit() + h * head_units + group, 0);
      Sums::add_unscaled(plus ? sums.plus[group] : sums.minus[group], weights, rows);
    }
  }

  __device__ void finish(int turn) {
    if (!failing_ && piece_.num_steps > 0) fold_all(turn);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
#pragma unroll
      for (int i = 0; i < 4; ++i) finish_row(h, i / 2, i % 2);
    }
    finish_tall_piece(launch_, piece_, [&](const tiles::CutWindow& window) { join(window); });
  }

  __device__ void finish_row(int h, int block, int row) const {
    const Sums& sums = sums_[h][block];
    float values[head_units][2];
    load_own(h, block, row, values);
    const float slope = launch_.slope;
    float with_plus = 0, with_minus = 0;
#pragma unroll
    for (int group = 0; group < head_units; ++group) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        with_plus = fmaf(values[group][k], sums.plus[group][2 * row + k], with_plus);
        with_minus = fmaf(values[group][k], sums.minus[group][2 * row + k], with_minus);
      }
    }
    with_plus = over_lanes(with_plus);
    with_minus = over_lanes(with_minus);
    const float plus_total = sums.plus_total(row);
    float found[numbers];
    if constexpr (by_rows) {
      found[0] = with_plus;
      found[1] = plus_total;
      found[2] = with_plus + with_minus;
    } else {
      found[0] = with_plus + slope * with_minus - plus_total - slope * sums.minus_total(row);
    }
    if (head_of(h) >= launch_.heads) return;
    if (piece_.slot >= 0) {
      store_slot(h, block, row, found);
    } else if (place_of_row(block, row) < piece_.num_rows) {
      if constexpr (!by_rows) store_values(h, block, row);
      if (lane() % 4 == 0) store_numbers(row_of(block, row), head_of(h), found);
    }
  }
  /// This lane's pairs of the own row: dO by rows, V by columns.
  __device__ void load_own(int h, int block, int row, float (&values)[head_units][2]) const {
    const T* const from = static_cast<const T*>(launch_.own_values) +
                          row_of(block, row) * launch_.own_values_stride +
                          std::int64_t{head_of(h)} * width + lane() % 4 * 2;
#pragma unroll
    for (int group = 0; group < head_units; ++group) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        values[group][k] = exists(h, block, row) ? cuda::widen(__ldg(from + group * 8 + k)) : 0.0f;
      }
    }
  }
  __device__ void store_values(int h, int block, int row) const {
    if (launch_.output == nullptr) return;
    const Sums& sums = sums_[h][block];
    T* const to = static_cast<T*>(launch_.output) + row_of(block, row) * launch_.output_stride +
                  std::int64_t{head_of(h)} * width + lane() % 4 * 2;
#pragma unroll
    for (int group = 0; group < head_units; ++group) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        to[group * 8 + k] =
            cuda::narrow<T>(sums.plus[group][2 * row + k] + sums.minus[group][2 * row + k]);
      }
    }
  }
  __device__ void store_numbers(std::int64_t row, int head, const float (&found)[numbers]) const {
    float gradient = found[0];
    if constexpr (by_rows) {
      gradient = (1 - launch_.slope) * (found[0] - found[2] * found[1]);
      const float log_sum = launch_.log_sum[row * launch_.log_sum_stride + head] * log2_of_e;
      static_cast<float2*>(launch_.row_state)[row * launch_.heads + head] = {log_sum, found[2]};
    }
    if (launch_.score_gradient == nullptr) return;
    static_cast<T*>(launch_.score_gradient)[row * launch_.score_gradient_stride + head] =
        cuda::narrow<T>(gradient);
  }

  // A row of a slot: features by columns, then the numbers of every head.

  __device__ float* slot_row(int slot, int place) const {
    return slot_row_of(launch_, slot, place);
  }
  __device__ int numbers_at(int head) const {
    const int features = by_rows ? 0 : static_cast<int>(launch_.heads) * width;
    return features + head * numbers;
  }
  __device__ void store_slot(int h, int block, int row, const float (&found)[numbers]) const {
    float* const to = slot_row(piece_.slot, place_of_row(block, row));
    const Sums& sums = sums_[h][block];
    if constexpr (!by_rows) {
#pragma unroll
      for (int group = 0; group < head_units; ++group) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          to[head_of(h) * width + group * 8 + lane() % 4 * 2 + k] =
              sums.plus[group][2 * row + k] + sums.minus[group][2 * row + k];
        }
      }
    }
    if (lane() % 4 != 0) return;
#pragma unroll
    for (int i = 0; i < numbers; ++i) to[numbers_at(head_of(h)) + i] = found[i];
  }
  /// In the order of the pieces.
  __device__ void join(const tiles::CutWindow& window) const {
    const int first = first_feature_ / width;
    const int left = static_cast<int>(launch_.heads) - first;
    const int num_heads = left < heads ? left : heads;
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * num_heads;
         i += tall_window_threads) {
      const int place = i / num_heads;
      const int head = first + i % num_heads;
      float found[numbers] = {};
      for (int k = 0; k < window.num_slots; ++k) {
        const float* const slot = slot_row(window.first_slot + k, place) + numbers_at(head);
#pragma unroll
        for (int n = 0; n < numbers; ++n) found[n] += __ldcg(slot + n);
      }
      store_numbers(std::int64_t{window.first_row} + place, head, found);
    }
    if (by_rows || launch_.output == nullptr) return;
    const int num_features = num_heads * width;
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * num_features;
         i += tall_window_threads) {
      const int place = i / num_features;
      const int feature = first * width + i % num_features;
      float sum = 0;
      for (int k = 0; k < window.num_slots; ++k) {
        sum += __ldcg(slot_row(window.first_slot + k, place) + feature);
      }
      static_cast<T*>(
          launch_
              .output)[(std::int64_t{window.first_row} + place) * launch_.output_stride + feature] =
          cuda::narrow<T>(sum);
    }
  }
};

}  // namespace tessera::ops
