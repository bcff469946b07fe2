// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rectified/launch.hpp"
#include "ops/attention/cuda/rectified/mask_sums.cuh"
#include "ops/attention/cuda/rectified/scores.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/attention/cuda/tall/tile_products.cuh"

/// The backward pass of GATv2 over windows of 64 rows. With P the weights, which come again from
/// the scores and `log_sum`, D = dO . O of a target, s the slope, and m = 1 where x[i] + y[j] > 0,
///
///     dS = P (dO . V - D)
///     u[i] = (1 - s) sum over j of dS m                        as dS of a row adds up to 0
///     w[j] = s sum over i of dS  +  (1 - s) sum over i of dS m
///     dx[i] = a u[i],   dy[j] = a w[j],   da = sum of x[i] u[i] + sum of y[j] w[j]
///     dV[j] = sum over i of P dO[i]
///
/// feature by feature; da is so since leaky_relu(z) is z times its derivative. The sweep over
/// windows of targets gives dx and leaves log_sum and D, the one over windows of sources dy and dV.
namespace tessera::ops {

/// Of targets, where they are the columns of a tile: log_sum in powers of two, and D.
template <bool by_rows>
using RectifiedColumnState = std::conditional_t<by_rows, NoColumns, StateColumns<float2, 1>>;

template <class T, int width, bool by_rows>
class RectifiedGradient : public GatheredWindows<RectifiedGradient<T, width, by_rows>, T, width, 2,
                                                 1, RectifiedColumnState<by_rows>> {
  using Windows = GatheredWindows<RectifiedGradient, T, width, 2, 1, RectifiedColumnState<by_rows>>;
  using Masks =
      MaskSums<T, width, TiledScores<width>, tiles::tile_columns / 16, tall_attention_threads / 32>;

 public:
  using Windows::heads;
  static_assert(heads == 1);
  static constexpr int shared_bytes = Windows::shared_bytes + Masks::bytes;

  __device__ RectifiedGradient(const TallAttentionLaunch& launch, char* shared)
      : Windows(launch, shared),
        scores_(vector(), launch.slope),
        masks_(shared + Windows::shared_bytes) {}

  /// Each warp brings its own 16 rows and what belongs to them.
  __device__ void begin_piece(const tiles::Piece& piece) {
    const T* const own = static_cast<const T*>(launch_.target) + first_feature();
    __syncwarp();
    scores_.begin(piece, first_row(), own, launch_.target_stride);
    bring_own(0, piece, launch_.own_values, launch_.own_values_stride);
    masks_.clear();
    masks_.begin([&](int row, int unit) {
      if (first_row() + row >= piece.num_rows) return uint4{};
      const std::int64_t vertex = std::int64_t{piece.first_row} + first_row() + row;
      return __ldg(reinterpret_cast<const uint4*>(own + vertex * launch_.target_stride + unit * 8));
    });
    __syncwarp();
    if constexpr (by_rows) {
      find_states(piece);
    } else {
      totals_[0] = totals_[1] = 0;
      values_ = {};
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    const std::uint32_t used = Scores::used_pairs(pattern);
    __syncwarp();
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      PairScores scores;
      scores_.find(scores, rows_of(turn, 0), step, used);
      float dots[4][4] = {};
      Products::add_dots(dots, cuda::shared_address(own_memory(0)), first_row(), rows_of(turn, 1),
                         0, step);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        // Rows that the tile does not have are no numbers to multiply by 0.
        if (step + k >= num_steps) break;
        add_step(turn, step + k, cells[k], scores.cells + 2 * k, dots + 2 * k);
      }
    }
    __syncwarp();
    masks_.add(rows_of(turn, 0), Masks::used_rows(pattern.word));
  }

  __device__ void finish(const tiles::Piece& piece) {
    constexpr int num_matrices = by_rows ? 1 : 2;
    const BlockColumns columns(first_feature(), width, all_features());
    GradientMatrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, 1.0f, columns};
    if constexpr (!by_rows) {
      matrices[1] = {launch_.output, launch_.output_stride, 1.0f, columns, all_features()};
    }
    const GradientResults<T, num_matrices> results(launch_, matrices);
    float sloped[2] = {0, 0};
    if constexpr (!by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        sloped[row] = launch_.slope * Scores::over_row(totals_[row]);
        const int place = first_row() + lane() / 4 + 8 * row;
#pragma unroll
        for (int unit = 0; unit < units; ++unit) {
          const auto& pair = values_.features[unit];
          results.store(piece, 1, place, unit * 8 + lane() % 4 * 2, pair[2 * row],
                        pair[2 * row + 1]);
        }
      }
    }
    masks_.finish(1 - launch_.slope, sloped, vector(),
                  [&](int row, int column, float low, float high) {
                    results.store(piece, 0, first_row() + row, column, low, high);
                  });
    results.finish(piece);
  }

  /// After the last piece.
  __device__ void end() const {
    if (launch_.vector_sums == nullptr) return;
    const std::int64_t warp = std::int64_t{blockIdx.x} * (tall_attention_threads / 32) +
                              static_cast<int>(threadIdx.x) / 32;
    masks_.store_vector_sums(launch_.vector_sums + warp * all_features() + first_feature());
  }

 private:
  using Scores = RectifiedScores<T, width>;
  using Products = TileProducts<T, width>;
  using Windows::all_features;
  using Windows::bring_own;
  using Windows::columns_of;
  using Windows::first_feature;
  using Windows::first_head;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::own_memory;
  using Windows::rows_of;
  using Windows::units;

  __device__ const T* vector() const {
    return static_cast<const T*>(launch_.vector) + first_feature();
  }

  __device__ void find_states(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = first_row() + lane() / 4 + 8 * row;
      const bool exists = place < piece.num_rows;
      const std::int64_t vertex = std::int64_t{piece.first_row} + place;
      float dot = 0;
      float log_sum = 0;
      if (exists) {
        const T* const gradients = static_cast<const T*>(launch_.own_values) +
                                   vertex * launch_.own_values_stride + first_feature();
        const T* const outputs = static_cast<const T*>(launch_.own_output) +
                                 vertex * launch_.own_output_stride + first_feature();
#pragma unroll
        for (int i = 0; i < Scores::lane_units; ++i) {
          const int feature = TiledScores<width>::unit_of_lane(i) * 8;
          float first[8], second[8];
          cuda::Vector<T, 16>::load(gradients + feature).widen_to(first);
          cuda::Vector<T, 16>::load(outputs + feature).widen_to(second);
#pragma unroll
          for (int k = 0; k < 8; ++k) dot = fmaf(first[k], second[k], dot);
        }
        log_sum =
            __ldg(launch_.log_sum + vertex * launch_.log_sum_stride + first_head()) * log2_of_e;
      }
      states_[row] = {log_sum, Scores::over_row(dot)};
      if (exists && lane() % 4 == 0) {
        static_cast<float2*>(launch_.row_state)[vertex * launch_.heads + first_head()] =
            states_[row];
      }
    }
  }

  /// A step's cells become weights and gradients of scores.
  __device__ void add_step(int turn, int step, const StepPattern& pattern, const float (*scores)[4],
                           const float (*dots)[4]) {
    StepWeights<T> weights, gradients;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int row = place % 2;
      float2 states[2] = {states_[row], states_[row]};
      if constexpr (!by_rows) {
        const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
        const float4 both = *reinterpret_cast<const float4*>(&columns_of(turn).of[0][column]);
        states[0] = {both.x, both.y};
        states[1] = {both.z, both.w};
      }
      float pair[2], gradient[2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int at = row * 2 + odd;
        const float weight = power_of_2(scores[place / 2][at] - states[odd].x);
        const bool exists = pattern.has(place, odd);
        pair[odd] = exists ? weight : 0.0f;
        gradient[odd] = exists ? weight * (dots[place / 2][at] - states[odd].y) : 0.0f;
        if constexpr (!by_rows) totals_[row] += gradient[odd];
      }
      gradients.set(place, gradient[0], gradient[1]);
      if constexpr (!by_rows) weights.set(place, pair[0], pair[1]);
    }
    masks_.put(step, gradients);
    if constexpr (!by_rows) Products::add_rows(values_, weights, rows_of(turn, 1), 0, step);
  }

  Scores scores_;
  Masks masks_;
  float2 states_[2];           ///< by rows: of the two rows of this lane
  float totals_[2];            ///< by columns: of dS, over this lane's columns
  HeadSums<T, width> values_;  ///< by columns: dV
};

template <class T, int width, bool by_rows>
__global__ __launch_bounds__(tall_attention_threads,
                             2) void differentiate_rectified(const TallAttentionLaunch launch) {
  run_gathered_windows<RectifiedGradient<T, width, by_rows>>(launch);
}

template <class T, bool by_rows>
constexpr RectifiedGradientFunctions make_rectified_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return RectifiedGradientFunctions{
        gathered_function<RectifiedGradient<T, rectified_widths[i], by_rows>,
                          differentiate_rectified<T, rectified_widths[i], by_rows>>()...};
  }
  (std::make_index_sequence<num_rectified_gradients>{});
}

}  // namespace tessera::ops
