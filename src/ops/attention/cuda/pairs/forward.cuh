// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/softmax.cuh"
#include "ops/attention/cuda/pairs/kernel.cuh"
#include "ops/attention/cuda/pairs/scores.cuh"
#include "ops/attention/cuda/pairs/shares.cuh"

/// The forward pass of GATv2: each lane has a softmax over its own edges, which are put together in
/// the end.
namespace tessera::ops {

/// `shares`: values are the sources, and are gathered once.
template <class T, int width, bool shares>
class PairForward {
  using Row = LaneRow<T, width>;
  using Share = PairShare<width>;
  static constexpr int held = Share::held;
  static constexpr float slack = 7;  ///< weights may grow to 2^7 before the base follows

 public:
  static constexpr int blocks = width == 128 ? 2 : width == 64 ? 4 : 6;

  __device__ explicit PairForward(const RowsAttentionLaunch& launch)
      : launch_(launch),
        scores_(launch.vector, launch.slope),
        own_rows_(lane_features<width>(launch.own_scores)),
        met_rows_(lane_features<width>(launch.gathered_scores)),
        value_rows_(lane_features<width>(launch.gathered_values)) {}

  __device__ void run(unsigned item) {
    const PairEdges edges = pair_edges(launch_, item);
    Row own[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own[half].load(own_rows_, edges.rows[half], edges.has_edges(half));
      base_[half] = lowest_base;
      sum_[half] = 0;
#pragma unroll
      for (float& feature : features_[half]) feature = 0;
    }
    scores_.begin(own);
    begins_ = true;
    raised_ = false;
    for_pairs(edges, [&](const PairVertices& vertices) {
      step(vertices, is_piece(launch_, item));
      begins_ = false;
    });
    finish(pair_result(launch_, item, Share::half()));
  }
  __device__ void end() const {}

 private:
  __device__ void step(const PairVertices& vertices, bool one_row) {
    Row met[2], values[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      met[half].load(met_rows_, vertices.ids[half], vertices.exist[half]);
      if constexpr (!shares) {
        values[half].load(value_rows_, vertices.ids[half], vertices.exist[half]);
      }
    }
    float scores[2];
    scores_.find(scores, met);
    bool rises = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!vertices.exist[half]) scores[half] = -cuda::infinity;
      rises = rises || scores[half] > base_[half] + slack;
    }
    if (begins_) {
      set_bases(scores, one_row);
    } else if (__any_sync(~0u, rises) != 0) {
      raise(scores);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float weight = power_of_2(scores[half] - base_[half]);
      sum_[half] += weight;
#pragma unroll
      for (int chunk = 0; chunk < Row::chunks; ++chunk) {
        add_weighted_unit<T>(features_[half] + 8 * chunk, weight,
                             shares ? met[half].of[chunk] : values[half].of[chunk]);
      }
    }
  }
  /// To the largest of the first scores of each row, in all lanes.
  __device__ void set_bases(const float (&scores)[2], bool one_row) {
    base_[0] = scores[0];
    base_[1] = scores[1];
    largest_over_edges(base_, one_row);
    base_[0] = fmaxf(base_[0], lowest_base);
    base_[1] = fmaxf(base_[1], lowest_base);
  }
  /// Makes room for scores, each lane for its own.
  __device__ void raise(const float (&scores)[2]) {
    raised_ = true;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base = scores[half] > base_[half] + slack ? scores[half] : base_[half];
      rescale(half, power_of_2(base_[half] - base));
      base_[half] = base;
    }
  }
  /// Until all lanes of a row have the same.
  __device__ void join_bases(bool one_row) {
    float joint[2] = {base_[0], base_[1]};
    largest_over_edges(joint, one_row);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rescale(half, power_of_2(base_[half] - joint[half]));
      base_[half] = joint[half];
    }
  }
  __device__ void rescale(int half, float factor) {
    sum_[half] *= factor;
#pragma unroll
    for (float& feature : features_[half]) feature *= factor;
  }

  __device__ void finish(const PairResult& result) {
    if (raised_) join_bases(result.one_row);
    add_over_edges(sum_, result.one_row);
    Share share(features_, result.one_row);
    float base = Share::half() == 0 ? base_[0] : base_[1];
    float sum = Share::half() == 0 ? sum_[0] : sum_[1];
    if (result.is_cut()) {
      if (result.row >= 0) store_piece(result.piece, share, base, sum);
      if (!is_last_piece(launch_, result.piece)) return;
      join_pieces(result.piece, share, base, sum);
    }
    if (result.row >= 0) store(result.row, result.has_edges, share, base, sum);
  }

  __device__ void store(VertexId row, bool has_edges, Share& share, float base, float sum) const {
    const float reciprocal = has_edges ? __frcp_rn(sum) : 0.0f;
#pragma unroll
    for (float& feature : share.of) feature *= reciprocal;
    share.store(static_cast<T*>(launch_.output.data) + row * launch_.output.stride +
                std::int64_t{blockIdx.y} * width + Share::first_feature());
    if (launch_.log_sum == nullptr || Share::first_feature() != 0) return;
    launch_.log_sum[row * launch_.log_sum_stride + blockIdx.y] =
        has_edges ? fmaf(base, ln_of_2, logf(sum)) : -cuda::infinity;
  }

  /// A slot holds the features of all heads, then their bases, then their sums.
  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }
  __device__ std::int64_t bases_at() const { return launch_.heads * width + blockIdx.y; }
  __device__ void store_piece(const RowPiece& piece, const Share& share, float base,
                              float sum) const {
    float* const slot = slot_at(piece.slot);
#pragma unroll
    for (int i = 0; i < Share::size; ++i) slot[Share::begin() + i] = share.of[i];
    if (Share::first_feature() != 0) return;
    slot[bases_at()] = base;
    slot[bases_at() + launch_.heads] = sum;
  }
  /// In order.
  __device__ void join_pieces(const RowPiece& piece, Share& share, float& base, float& sum) const {
    base = lowest_base;
    sum = 0;
#pragma unroll
    for (float& feature : share.of) feature = 0;
    for (int k = 0; k < piece.num_slots; ++k) {
      const float* const slot = slot_at(piece.first_slot + k);
      const float other = __ldcg(slot + bases_at());
      const float joint = fmaxf(base, other);
      const float mine = power_of_2(base - joint);
      const float theirs = power_of_2(other - joint);
      sum = sum * mine + __ldcg(slot + bases_at() + launch_.heads) * theirs;
#pragma unroll
      for (int i = 0; i < Share::size; ++i) {
        share.of[i] = share.of[i] * mine + __ldcg(slot + Share::begin() + i) * theirs;
      }
      base = joint;
    }
  }

  const RowsAttentionLaunch& launch_;
  EdgeScores<T, width> scores_;
  FeatureRows own_rows_, met_rows_, value_rows_;
  bool begins_, raised_;  ///< the same in all lanes
  // Of this lane's edges.
  float base_[2], sum_[2];
  float features_[2][held];
};

template <class T, int width>
inline constexpr RowsAttentionFunction pair_forward =
    launch_pairs<PairForward<T, width, true>, PairForward<T, width, false>>;

}  // namespace tessera::ops
