// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/short/slots.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"
#include "ops/attention/cuda/tall/packed.cuh"
#include "ops/attention/cuda/tall/quad_rows.cuh"

/// The output of windows of 16 rows.
namespace tessera::ops {

/// Stores eight neighbouring features.
template <class T>
__device__ void store_eight(T* to, const float (&features)[8], float factor) {
  std::uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = packed<T>(features[2 * i] * factor, features[2 * i + 1] * factor);
  }
  *reinterpret_cast<uint4*>(to) = {pairs[0], pairs[1], pairs[2], pairs[3]};
}
__device__ inline void store_eight(float* to, const float (&features)[8]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    reinterpret_cast<float2*>(to)[i] = {features[2 * i], features[2 * i + 1]};
  }
}

/// What the features of a row are multiplied by: a row without edges is 0; one of nothing but
/// scores of -inf divides 0 by 0.
__device__ inline float short_row_factor(const cuda::Offsets& offsets, std::int64_t vertex,
                                         float sum) {
  const auto is_empty = [&] {
    return offsets.narrow != nullptr
               ? __ldg(offsets.narrow + vertex) == __ldg(offsets.narrow + vertex + 1)
               : __ldg(offsets.wide + vertex) == __ldg(offsets.wide + vertex + 1);
  };
  return sum == 0 && is_empty() ? 0.0f : __fdividef(1, sum);
}

/// Of weights whose sum is relative to 2^base.
__device__ inline float log_of_sum(float base, float sum) {
  return sum == 0 ? -cuda::infinity : (base + __log2f(sum)) * ln_of_2;
}

/// Of one head, blockIdx.y.
template <class T, int width>
class ShortResults {
 public:
  __device__ ShortResults(const TallAttentionLaunch& launch, const tiles::Piece& piece)
      : launch_(launch), piece_(piece), head_(static_cast<int>(blockIdx.y)) {}

  __device__ bool is_cut() const { return piece_.slot >= 0; }

  /// What the features of the row at `place` are multiplied by: a row without edges is 0; one of
  /// nothing but scores of -inf divides 0 by 0. Of a cut window nothing is done yet.
  __device__ float factor(int place, float sum) const {
    if (is_cut()) return 1;
    return place < piece_.num_rows ? factor_of(std::int64_t{piece_.first_row} + place, sum) : 0.0f;
  }
  /// Stores the row's log_sum, or of a cut window what it will come from.
  __device__ void store_sum(int place, float base, float sum) const {
    if (is_cut()) {
      float* const to = slot_row(piece_.slot, place);
      to[base_at()] = base;
      to[sum_at()] = sum;
    } else if (place < piece_.num_rows) {
      store_log_sum(std::int64_t{piece_.first_row} + place, base, sum);
    }
  }
  /// Both, the sum where `speaks`.
  __device__ float settle(int place, float base, float sum, bool speaks) const {
    if (speaks) store_sum(place, base, sum);
    return factor(place, sum);
  }
  /// Stores those of rows g and g + 8, which four lanes know: two of them at once.
  __device__ void settle_both(const float (&bases)[2], const float (&sums)[2]) const {
    const int row = WarpLane::quarter();
    if (row >= 2) return;
    store_sum(WarpLane::group() + 8 * row, row == 0 ? bases[0] : bases[1],
              row == 0 ? sums[0] : sums[1]);
  }

  /// Eight features of the row at `place`, from `feature` of the head on.
  __device__ void store(int place, int feature, const float (&features)[8], float factor) const {
    if (is_cut()) {
      store_eight(slot_row(piece_.slot, place) + first_feature() + feature, features);
    } else if (place < piece_.num_rows) {
      store_eight<T>(output_at(std::int64_t{piece_.first_row} + place) + feature, features, factor);
    }
  }

  /// Two neighbouring features.
  __device__ void store(int place, int feature, float low, float high, float factor) const {
    if (is_cut()) {
      float* const to = slot_row(piece_.slot, place) + first_feature() + feature;
      *reinterpret_cast<float2*>(to) = {low, high};
    } else if (place < piece_.num_rows) {
      T* const to = output_at(std::int64_t{piece_.first_row} + place) + feature;
      *reinterpret_cast<std::uint32_t*>(to) = packed<T>(low * factor, high * factor);
    }
  }

  /// All features of the row at `place`, which four lanes have together (quad_rows.cuh).
  __device__ void store_row(int place, int row, const float (&features)[width / 8][4],
                            float factor) const {
    if (is_cut()) {
      store_quad_row(slot_row(piece_.slot, place) + first_feature(), features, row);
    } else {
      store_quad_row(output_at(std::int64_t{piece_.first_row} + place), place < piece_.num_rows,
                     features, row, factor);
    }
  }

  /// After all rows of a piece: where the window is cut and this was its last piece, its results.
  __device__ void finish() const {
    finish_short_piece(launch_, piece_, head_, [&](const tiles::CutWindow& window) {
      for (int place = 0; place < window.num_rows; place += rows_at_once) join_rows(window, place);
    });
  }

 private:
  __device__ void store_log_sum(std::int64_t vertex, float base, float sum) const {
    if (launch_.log_sum == nullptr) return;
    launch_.log_sum[vertex * launch_.log_sum_stride + head_] = log_of_sum(base, sum);
  }
  __device__ float factor_of(std::int64_t vertex, float sum) const {
    return short_row_factor(launch_.offsets, vertex, sum);
  }

  /// Some neighbouring rows, all of them on their way at once: each in the order of the pieces.
  static constexpr int rows_at_once = 4;
  static_assert(short_attention_height % rows_at_once == 0);

  __device__ void join_rows(const tiles::CutWindow& window, int first) const {
    float bases[rows_at_once];
#pragma unroll
    for (float& base : bases) base = lowest_base;
    for (int k = 0; k < window.num_slots; ++k) {
#pragma unroll
      for (int i = 0; i < rows_at_once; ++i) {
        const float* const slot = slot_row(window.first_slot + k, first + i);
        bases[i] = fmaxf(bases[i], __ldcg(slot + base_at()));
      }
    }
    constexpr int share = width / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float sums[rows_at_once] = {};
    float totals[rows_at_once][share] = {};
    for (int k = 0; k < window.num_slots; ++k) {
#pragma unroll
      for (int i = 0; i < rows_at_once; ++i) {
        const float* const slot = slot_row(window.first_slot + k, first + i);
        const float factor = power_of_2(__ldcg(slot + base_at()) - bases[i]);
        sums[i] = fmaf(__ldcg(slot + sum_at()), factor, sums[i]);
#pragma unroll
        for (int j = 0; j < share; ++j) {
          totals[i][j] = fmaf(__ldcg(slot + first_feature() + lane + 32 * j), factor, totals[i][j]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
      if (first + i >= window.num_rows) break;
      const std::int64_t vertex = std::int64_t{window.first_row} + first + i;
      if (lane == 0) store_log_sum(vertex, bases[i], sums[i]);
      const float reciprocal = factor_of(vertex, sums[i]);
#pragma unroll
      for (int j = 0; j < share; ++j) {
        output_at(vertex)[lane + 32 * j] = cuda::narrow<T>(totals[i][j] * reciprocal);
      }
    }
  }

  __device__ int first_feature() const { return head_ * width; }
  __device__ T* output_at(std::int64_t vertex) const {
    return static_cast<T*>(launch_.output) + vertex * launch_.output_stride + first_feature();
  }
  /// A row of a slot: features of all heads, then their bases, then their sums.
  __device__ float* slot_row(int slot, int place) const {
    return short_slot_row(launch_, slot, place);
  }
  __device__ std::int64_t base_at() const { return launch_.heads * width + head_; }
  __device__ std::int64_t sum_at() const { return base_at() + launch_.heads; }

  const TallAttentionLaunch& launch_;
  const tiles::Piece& piece_;
  int head_;
};

}  // namespace tessera::ops
