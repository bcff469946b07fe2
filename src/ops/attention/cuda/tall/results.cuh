// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/windows/edge_weights.cuh"

/// What a block found of a window goes to the output, or to a slot where the window is cut; the
/// block that fills the last slot of a window puts all of them together.
namespace tessera::ops {

/// Of the `block_features` features from blockIdx.y * block_features on, in heads of `width`. A
/// head wider than that is shared by several blocks, each of which has its sums.
template <class T, int width, int block_features>
class WindowResults {
 public:
  static constexpr int heads = width < block_features ? block_features / width : 1;

  __device__ explicit WindowResults(const WindowsLaunch& launch)
      : launch_(launch),
        first_feature_(static_cast<int>(blockIdx.y) * block_features),
        all_features_(static_cast<int>(launch.heads) * width) {}

  __device__ int head_of(int feature) const { return (first_feature_ + feature) / width; }
  __device__ bool has(int feature) const { return first_feature_ + feature < all_features_; }

  /// `groups` groups of eight features from `feature` of the block on, of the row at `place` of the
  /// window; its four lanes hold two of each. `sum` of weights relative to 2^base.
  template <int groups>
  __device__ void store(const tiles::Piece& piece, int place, int feature,
                        const float (&features)[groups][2], float base, float sum) const {
    if (!has(feature)) return;
    const int lane = static_cast<int>(threadIdx.x % 4);
    const int at = first_feature_ + feature + 2 * lane;
    const bool speaks = lane == 0 && feature % width == 0;
    if (piece.slot >= 0) {
      float* const to = slot_row(piece.slot, place);
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        to[at + 8 * group] = features[group][0];
        to[at + 8 * group + 1] = features[group][1];
      }
      if (speaks) {
        to[base_at(feature / width)] = base;
        to[sum_at(feature / width)] = sum;
      }
      return;
    }
    if (place >= piece.num_rows) return;
    const std::int64_t vertex = std::int64_t{piece.first_row} + place;
    const float reciprocal = reciprocal_of(vertex, sum);
    T* const to = static_cast<T*>(launch_.output) + vertex * launch_.output_stride + at;
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const float low = features[group][0] * reciprocal;
      const float high = features[group][1] * reciprocal;
      if constexpr (sizeof(T) == 4) {
        *reinterpret_cast<float2*>(to + 8 * group) = {low, high};
      } else {
        *reinterpret_cast<std::uint32_t*>(to + 8 * group) = packed<T>(low, high);
      }
    }
    if (speaks) store_log_sum(vertex, head_of(feature), base, sum);
  }

  /// After all rows of a piece: where the window is cut and this was its last piece, its results.
  __device__ void finish(const tiles::Piece& piece) const {
    finish_tall_piece(launch_, piece, [&](const tiles::CutWindow& window) { join(window); });
  }

 private:
  /// A row without edges is 0; one of nothing but scores of -inf divides 0 by 0.
  __device__ float reciprocal_of(std::int64_t vertex, float sum) const {
    return sum == 0 && is_empty(vertex) ? 0.0f : 1 / sum;
  }
  __device__ bool is_empty(std::int64_t vertex) const {
    const cuda::Offsets& offsets = launch_.offsets;
    return offsets.narrow != nullptr
               ? __ldg(offsets.narrow + vertex) == __ldg(offsets.narrow + vertex + 1)
               : __ldg(offsets.wide + vertex) == __ldg(offsets.wide + vertex + 1);
  }
  __device__ void store_log_sum(std::int64_t vertex, int head, float base, float sum) const {
    if (launch_.log_sum == nullptr || first_feature_ % width != 0) return;
    launch_.log_sum[vertex * launch_.log_sum_stride + head] =
        sum == 0 ? -cuda::infinity : (base + log2f(sum)) * ln_of_2;
  }

  __device__ float* slot_row(int slot, int place) const {
    return slot_row_of(launch_, slot, place);
  }
  /// In a row of a slot, for head h of the block.
  __device__ int base_at(int h) const {
    return all_features_ + static_cast<int>(blockIdx.y) * heads + h;
  }
  __device__ int sum_at(int h) const { return base_at(h) + static_cast<int>(gridDim.y) * heads; }

  /// In the order of the pieces. First what the features of every piece are multiplied by takes the
  /// place of its base, then the features are added up.
  __device__ void join(const tiles::CutWindow& window) const {
    const int left = all_features_ - first_feature_;
    const int num_features = left < block_features ? left : block_features;
    const int num_heads = width < num_features ? num_features / width : 1;
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * num_heads;
         i += tall_window_threads) {
      join_bases(window, i / num_heads, i % num_heads);
    }
    __threadfence_block();
    __syncthreads();
    constexpr int chunk = 8;  // features of a thread
    const int of_row = num_features / chunk;
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * of_row;
         i += tall_window_threads) {
      const int place = i / of_row;
      const int feature = i % of_row * chunk;
      float totals[chunk] = {};
#pragma unroll 2
      for (int k = 0; k < window.num_slots; ++k) {
        const float* const slot = slot_row(window.first_slot + k, place);
        const float factor = __ldcg(slot + base_at(feature / width));
        float values[chunk];
#pragma unroll
        for (int j = 0; j < chunk; ++j) values[j] = __ldcg(slot + first_feature_ + feature + j);
#pragma unroll
        for (int j = 0; j < chunk; ++j) totals[j] = fmaf(values[j], factor, totals[j]);
      }
      T* const to = static_cast<T*>(launch_.output) +
                    (std::int64_t{window.first_row} + place) * launch_.output_stride +
                    first_feature_ + feature;
#pragma unroll
      for (int j = 0; j < chunk; ++j) to[j] = cuda::narrow<T>(totals[j]);
    }
  }

  __device__ void join_bases(const tiles::CutWindow& window, int place, int h) const {
    const std::int64_t vertex = std::int64_t{window.first_row} + place;
    float base = lowest_base;
    for (int k = 0; k < window.num_slots; ++k) {
      base = fmaxf(base, __ldcg(slot_row(window.first_slot + k, place) + base_at(h)));
    }
    float sum = 0;
    for (int k = 0; k < window.num_slots; ++k) {
      const float* const slot = slot_row(window.first_slot + k, place);
      sum = fmaf(__ldcg(slot + sum_at(h)), power_of_2(__ldcg(slot + base_at(h)) - base), sum);
    }
    const float reciprocal = reciprocal_of(vertex, sum);
    for (int k = 0; k < window.num_slots; ++k) {
      float* const slot = slot_row(window.first_slot + k, place);
      __stcg(slot + base_at(h), power_of_2(__ldcg(slot + base_at(h)) - base) * reciprocal);
    }
    store_log_sum(vertex, head_of(h * width), base, sum);
  }

  const WindowsLaunch& launch_;
  int first_feature_;
  int all_features_;
};

/// What a warp has summed up of a piece goes where it belongs, as `Output`.
template <class Output, int features, class T, int width, int heads>
__device__ void finish_piece(const WindowsLaunch& launch, const tiles::Piece& piece,
                             const HeadSums<T, width> (&sums)[heads]) {
  const WindowResults<Output, width, features> results(launch);
  const int first =
      static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(threadIdx.x % 32) / 4;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const HeadSums<T, width>& head = sums[h];
      float pairs[width / 8][2];
#pragma unroll
      for (int group = 0; group < width / 8; ++group) {
        pairs[group][0] = head.features[group][2 * row];
        pairs[group][1] = head.features[group][2 * row + 1];
      }
      results.store(piece, first + 8 * row, h * width, pairs, head.base[row], head.total(row));
    }
  }
  results.finish(piece);
}

}  // namespace tessera::ops
