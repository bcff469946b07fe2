// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/last_arrival.cuh"
#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/cuda/exponentials.cuh"
#include "ops/windows/number_pairs.cuh"
#include "ops/windows/quad_rows.cuh"
#include "ops/windows/warp_rows.cuh"

namespace tessera::ops {

/// What a warp found of a piece of a window of 16 rows and the head blockIdx.y goes to matrices, or
/// to a slot where the window is cut; the warp that fills the last slot of a window puts all of
/// them together.
template <class Launch = WindowsLaunch>
class ShortPieceResults {
 public:
  __device__ ShortPieceResults(const Launch& launch, const tiles::Piece& piece)
      : launch_(launch), piece_(piece) {}

 protected:
  __device__ bool is_cut() const { return piece_.slot >= 0; }
  __device__ bool has(int place) const { return place < piece_.num_rows; }
  __device__ std::int64_t vertex(int place) const { return std::int64_t{piece_.first_row} + place; }
  /// A row of a slot: what numbers it has is for a pass to say.
  __device__ float* slot_row(int slot, int place) const {
    return launch_.slots + (std::int64_t{slot} * short_window_height + place) * launch_.slot_row;
  }
  __device__ float* slot_row(int place) const { return slot_row(piece_.slot, place); }

  /// After all rows of a piece: calls `join(window)` where the window is cut and this warp filled
  /// its last slot of the head. Here and below `head` is blockIdx.y, signed or not as the pass
  /// forms its addresses with it.
  template <class Head, class Join>
  __device__ void finish_piece(Head head, Join&& join) const {
    if (piece_.slot < 0) return;
    const tiles::CutWindow window = launch_.slot_windows[piece_.slot];
    unsigned* const counter =
        launch_.arrivals + std::int64_t{head} * launch_.num_slots + window.first_slot;
    if (cuda::is_last_warp(counter, static_cast<unsigned>(window.num_slots))) join(window);
  }

  /// What the features of a row are multiplied by: a row without edges is 0; one whose scores are
  /// all -inf divides 0 by 0.
  __device__ float factor_of(std::int64_t vertex, float sum) const {
    const cuda::Offsets& offsets = launch_.offsets;
    const auto is_empty = [&] {
      return offsets.narrow != nullptr
                 ? __ldg(offsets.narrow + vertex) == __ldg(offsets.narrow + vertex + 1)
                 : __ldg(offsets.wide + vertex) == __ldg(offsets.wide + vertex + 1);
    };
    return sum == 0 && is_empty() ? 0.0f : __fdividef(1, sum);
  }
  /// Of weights whose sum is relative to 2^base.
  template <class Head>
  __device__ void store_log_sum(std::int64_t vertex, Head head, float base, float sum) const {
    if (launch_.log_sum == nullptr) return;
    launch_.log_sum[vertex * launch_.log_sum_stride + head] =
        sum == 0 ? -cuda::infinity : (base + __log2f(sum)) * ln_of_2;
  }

  const Launch& launch_;
  const tiles::Piece& piece_;
};

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

/// The output. Slots have in a row the features of all heads, then their bases, then their sums.
template <class T, int width>
class ShortResults : public ShortPieceResults<> {
 public:
  using ShortPieceResults<>::ShortPieceResults;

  /// What the features of the row at `place` are multiplied by. Of a cut window nothing is done
  /// yet.
  __device__ float factor(int place, float sum) const {
    if (is_cut()) return 1;
    return has(place) ? factor_of(vertex(place), sum) : 0.0f;
  }
  /// Stores the row's log_sum, or of a cut window what it will come from.
  __device__ void store_sum(int place, float base, float sum) const {
    if (is_cut()) {
      float* const to = slot_row(place);
      to[base_at()] = base;
      to[sum_at()] = sum;
    } else if (has(place)) {
      store_log_sum(vertex(place), head(), base, sum);
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
      store_eight(slot_row(place) + first_feature() + feature, features);
    } else if (has(place)) {
      store_eight<T>(output_at(vertex(place)) + feature, features, factor);
    }
  }

  /// Two neighbouring features.
  __device__ void store(int place, int feature, float low, float high, float factor) const {
    if (is_cut()) {
      float* const to = slot_row(place) + first_feature() + feature;
      *reinterpret_cast<float2*>(to) = {low, high};
    } else if (has(place)) {
      T* const to = output_at(vertex(place)) + feature;
      *reinterpret_cast<std::uint32_t*>(to) = packed<T>(low * factor, high * factor);
    }
  }

  /// All features of the row at `place`, which four lanes have together (quad_rows.cuh).
  __device__ void store_row(int place, int row, const float (&features)[width / 8][4],
                            float factor) const {
    if (is_cut()) {
      store_quad_row(slot_row(place) + first_feature(), features, row);
    } else {
      store_quad_row(output_at(vertex(place)), has(place), features, row, factor);
    }
  }

  /// After all rows of a piece.
  __device__ void finish() const {
    finish_piece(head(), [&](const tiles::CutWindow& window) {
      for (int place = 0; place < window.num_rows; place += rows_at_once) join_rows(window, place);
    });
  }

 private:
  /// Some neighbouring rows, all of them in flight at once: each in the order of the pieces.
  static constexpr int rows_at_once = 4;
  static_assert(short_window_height % rows_at_once == 0);

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
      if (lane == 0) store_log_sum(vertex, head(), bases[i], sums[i]);
      const float reciprocal = factor_of(vertex, sums[i]);
#pragma unroll
      for (int j = 0; j < share; ++j) {
        output_at(vertex)[lane + 32 * j] = cuda::narrow<T>(totals[i][j] * reciprocal);
      }
    }
  }

  __device__ static int head() { return static_cast<int>(blockIdx.y); }
  __device__ static int first_feature() { return head() * width; }
  __device__ T* output_at(std::int64_t vertex) const {
    return static_cast<T*>(launch_.output) + vertex * launch_.output_stride + first_feature();
  }
  __device__ std::int64_t base_at() const { return launch_.heads * width + head(); }
  __device__ std::int64_t sum_at() const { return base_at() + launch_.heads; }
};

}  // namespace tessera::ops
