// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/results.cuh"
#include "ops/attention/cuda/window_functions.hpp"

namespace tessera::ops {

/// What a warp found of one row of a window and a head, relative to 2^base: weights of all edges,
/// and of those whose score lies above 0.
struct KeptWeights {
  float base;
  float sum;
  float above;
};

/// The output of the 16 rows of a window in bf16, with sums over the edges above 0 beside those
/// over all. Of one head, blockIdx.y.
template <int width>
class KeepingResults : public ShortPieceResults<KeepingLaunch> {
  using Base = ShortPieceResults<KeepingLaunch>;
  using Base::launch_, Base::piece_, Base::slot_row;
  using T = __nv_bfloat16;

 public:
  using Base::Base;

  /// Of the row at `place`; `speaks` in one lane. Returns what its features are to be multiplied
  /// by.
  __device__ float settle(int place, const KeptWeights& weights, bool speaks) const {
    if (piece_.slot >= 0) {
      if (speaks) *weights_in(slot_row(piece_.slot, place)) = as_vector(weights);
      return 1;
    }
    if (place >= piece_.num_rows) return 0;
    const std::int64_t vertex = std::int64_t{piece_.first_row} + place;
    const float factor = Base::factor_of(vertex, weights.sum);
    if (speaks) store_weights(vertex, weights, factor);
    return factor;
  }
  /// Eight features, from `feature` of the head on.
  __device__ void store(int place, int feature, const float (&all)[8], const float (&above)[8],
                        float factor) const {
    if (piece_.slot >= 0) {
      float* const to = features_in(slot_row(piece_.slot, place)) + feature;
      store_eight(to, all);
      store_eight(to + width, above);
    } else if (place < piece_.num_rows) {
      const std::int64_t vertex = std::int64_t{piece_.first_row} + place;
      store_eight<T>(output_at(vertex) + feature, all, factor);
      store_eight<T>(above_at(vertex) + feature, above, factor);
    }
  }

  /// After all rows of a piece.
  __device__ void finish() const {
    Base::finish_piece(blockIdx.y, [&](const tiles::CutWindow& window) {
      for (int place = 0; place < window.num_rows; place += rows_at_once) join_rows(window, place);
    });
  }

 private:
  /// Some neighbouring rows, all of them on their way at once: each in the order of the pieces.
  static constexpr int rows_at_once = 4;
  static_assert(short_window_height % rows_at_once == 0);

  __device__ void join_rows(const tiles::CutWindow& window, int first) const {
    // Of both kinds: a lane has neighbouring features.
    constexpr int share = 2 * width / 32;
    static_assert(share == 4);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    KeptWeights joined[rows_at_once];
    float totals[rows_at_once][share] = {};
#pragma unroll
    for (KeptWeights& of_row : joined) of_row = {lowest_base, 0, 0};
    for (int k = 0; k < window.num_slots; ++k) {
#pragma unroll
      for (int i = 0; i < rows_at_once; ++i) {
        const float* const slot = slot_row(window.first_slot + k, first + i);
        joined[i].base = fmaxf(joined[i].base, __ldcg(weights_in(slot)).x);
      }
    }
    for (int k = 0; k < window.num_slots; ++k) {
#pragma unroll
      for (int i = 0; i < rows_at_once; ++i) {
        const float* const slot = slot_row(window.first_slot + k, first + i);
        const float4 weights = __ldcg(weights_in(slot));
        const float2* const pairs = reinterpret_cast<const float2*>(features_in(slot)) + 2 * lane;
        const float2 low = __ldcg(pairs);
        const float2 high = __ldcg(pairs + 1);
        const float factor = power_of_2(weights.x - joined[i].base);
        joined[i].sum = fmaf(weights.y, factor, joined[i].sum);
        joined[i].above = fmaf(weights.z, factor, joined[i].above);
        const float features[share] = {low.x, low.y, high.x, high.y};
#pragma unroll
        for (int j = 0; j < share; ++j) totals[i][j] = fmaf(features[j], factor, totals[i][j]);
      }
    }
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
      if (first + i >= window.num_rows) break;
      const std::int64_t vertex = std::int64_t{window.first_row} + first + i;
      const float factor = Base::factor_of(vertex, joined[i].sum);
      if (lane == 0) store_weights(vertex, joined[i], factor);
      T* const to = lane < 16 ? output_at(vertex) : above_at(vertex);
      reinterpret_cast<uint2*>(to)[lane % 16] = {
          packed<T>(totals[i][0] * factor, totals[i][1] * factor),
          packed<T>(totals[i][2] * factor, totals[i][3] * factor)};
    }
  }

  __device__ void store_weights(std::int64_t vertex, const KeptWeights& weights,
                                float factor) const {
    launch_.above.weights[vertex * launch_.heads + blockIdx.y] = weights.above * factor;
    Base::store_log_sum(vertex, blockIdx.y, weights.base, weights.sum);
  }

  __device__ T* output_at(std::int64_t vertex) const {
    return static_cast<T*>(launch_.output) + vertex * launch_.output_stride + blockIdx.y * width;
  }
  __device__ T* above_at(std::int64_t vertex) const {
    return static_cast<T*>(launch_.above.features) + (vertex * launch_.heads + blockIdx.y) * width;
  }
  template <class Number>
  __device__ static Number* features_in(Number* row) {
    return row + blockIdx.y * (2 * width);
  }
  __device__ float4* weights_in(float* row) const {
    return reinterpret_cast<float4*>(row + launch_.heads * (2 * width)) + blockIdx.y;
  }
  __device__ const float4* weights_in(const float* row) const {
    return reinterpret_cast<const float4*>(row + launch_.heads * (2 * width)) + blockIdx.y;
  }
  __device__ static float4 as_vector(const KeptWeights& weights) {
    return {weights.base, weights.sum, weights.above, 0};
  }
};

}  // namespace tessera::ops
