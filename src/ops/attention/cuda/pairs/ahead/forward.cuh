// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/softmax.cuh"
#include "ops/attention/cuda/pairs/ahead/feed.cuh"
#include "ops/attention/cuda/pairs/ahead/sums.cuh"
#include "ops/attention/cuda/pairs/launch.hpp"
#include "ops/attention/cuda/pairs/scores.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// The forward pass of GATv2: a lane finds the weights of its edges, and the features of all of
/// them are summed by products of matrices.
namespace tessera::ops::ahead {

/// `shares`: values are the sources, and are gathered once.
template <class T, int width, int part_edges, bool shares>
class PairForward {
  using Row = LaneRow<T, width>;
  using Edges = PairEdges<part_edges>;
  using Lanes = PartLanes<part_edges>;
  using Sums = PartSums<T, width>;
  static constexpr int units = width / 8;
  static constexpr std::uint32_t ones = std::is_same_v<T, __half> ? 0x3c003c00u : 0x3f803f80u;
  static constexpr PairReads reads = {.num_own = 1,
                                      .num_met = shares ? 1 : 2,
                                      .log_sums = false,
                                      .states = false,
                                      .ahead = shares && width < 128 ? 2 : 1};

 public:
  using Feed = PairFeed<T, width, part_edges, reads>;

  __device__ PairForward(const RowsAttentionLaunch& launch, char* memory)
      : launch_(launch), scores_(launch.vector, launch.slope), feed_(launch, memory) {}

  __device__ void run() {
    feed_.for_items([&] { begin(); }, [&] { step(); },
                    [&](unsigned item) { finish(feed_.result(item, Lanes::part())); });
  }

 private:
  __device__ void begin() {
    Row own[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own[half] = feed_.own(0, Edges::part_of(half));
      left_[half] = feed_.count(Edges::part_of(half)) - Edges::slot();
    }
    scores_.begin(own);
    begins_ = true;
    features_.clear();
    total_.clear();
  }
  __device__ void step() {
    Row met[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) met[half] = feed_.met(0, half);
    float scores[2];
    scores_.find(scores, met);
    bool rises = begins_;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (left_[half] <= 0) scores[half] = -cuda::infinity;
      left_[half] -= feed_.turn();
      rises = rises || WeightBase<T>::must_rise(base_[half], scores[half]);
    }
    if (__any_sync(~0u, rises) != 0) make_room(scores);
    const float weights[2] = {power_of_2(scores[0] - base_[0]), power_of_2(scores[1] - base_[1])};
    const auto operand =
        EdgeOperand<T>::template of_parts<part_edges>(weights, feed_.has_one_row());
    total_.add(0, {ones, ones, ones, ones}, operand);
#pragma unroll
    for (int tile = 0; tile < Sums::tiles; ++tile) {
      std::uint32_t features[4];
      feed_.load_tile(features, shares ? 0 : 1, tile);
      features_.add(tile, features, operand);
    }
  }
  /// Bases follow the largest scores of each row, in all of its lanes.
  __device__ void make_room(const float (&scores)[2]) {
    float top[2] = {scores[0], scores[1]};
    largest_over_edges<part_edges>(top, feed_.has_one_row());
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float before = begins_ ? lowest_base : base_[half];
      base_[half] = begins_ || WeightBase<T>::must_rise(before, top[half])
                        ? WeightBase<T>::under(fmaxf(top[half], lowest_base))
                        : before;
      factors[half] = power_of_2(before - base_[half]);
    }
    const float factor = Lanes::of_part(factors);
    if (!begins_) {
      features_.scale(factor);
      total_.scale(factor);
    }
    begins_ = false;
  }

  __device__ void finish(const PairResult& result) {
    float base = Lanes::of_part(base_);
    float sum = total_.sum(0);
    float features[units];
#pragma unroll
    for (int unit = 0; unit < units; ++unit) features[unit] = features_.sum(unit);
    if (result.is_cut()) {
      if (result.row >= 0) store_piece(result.piece, features, base, sum);
      if (!is_last_piece(launch_, result.piece)) return;
      if (result.row >= 0) join_pieces(result.piece, features, base, sum);
    }
    if (result.row >= 0) store(result.row, result.has_edges, features, base, sum);
  }

  __device__ void store(VertexId row, bool has_edges, const float (&features)[units], float base,
                        float sum) const {
    const float reciprocal = has_edges ? __frcp_rn(sum) : 0.0f;
    T* const to = static_cast<T*>(launch_.output.data) + row * launch_.output.stride + first_at();
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
      to[unit * 8] = cuda::narrow<T>(features[unit] * reciprocal);
    }
    if (launch_.log_sum == nullptr || WarpLane::group() != 0) return;
    launch_.log_sum[row * launch_.log_sum_stride + blockIdx.y] =
        has_edges ? fmaf(base, ln_of_2, logf(sum)) : -cuda::infinity;
  }

  /// A slot holds the features of all heads, then their bases, then their sums.
  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }
  __device__ std::int64_t bases_at() const { return launch_.heads * width + blockIdx.y; }
  /// Of this lane's first feature.
  __device__ static std::int64_t first_at() {
    return std::int64_t{blockIdx.y} * width + WarpLane::group();
  }
  __device__ void store_piece(const RowPiece& piece, const float (&features)[units], float base,
                              float sum) const {
    float* const slot = slot_at(piece.slot);
#pragma unroll
    for (int unit = 0; unit < units; ++unit) slot[first_at() + unit * 8] = features[unit];
    if (WarpLane::group() != 0) return;
    slot[bases_at()] = base;
    slot[bases_at() + launch_.heads] = sum;
  }
  /// In order.
  __device__ void join_pieces(const RowPiece& piece, float (&features)[units], float& base,
                              float& sum) const {
    base = lowest_base;
    sum = 0;
#pragma unroll
    for (float& feature : features) feature = 0;
    for (int k = 0; k < piece.num_slots; ++k) {
      const float* const slot = slot_at(piece.first_slot + k);
      const float other = __ldcg(slot + bases_at());
      const float joint = fmaxf(base, other);
      const float mine = power_of_2(base - joint);
      const float theirs = power_of_2(other - joint);
      sum = sum * mine + __ldcg(slot + bases_at() + launch_.heads) * theirs;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        features[unit] = features[unit] * mine + __ldcg(slot + first_at() + unit * 8) * theirs;
      }
      base = joint;
    }
  }

  const RowsAttentionLaunch& launch_;
  EdgeScores<T, width> scores_;
  Feed feed_;
  bool begins_;  ///< the same in all lanes
  // Of this lane's edges.
  int left_[2];  ///< from this lane's edge to the last
  float base_[2];
  Sums features_;
  PartSums<T, 16> total_;  ///< of weights
};

/// Blocks that an SM should hold, as registers allow.
template <int width>
inline constexpr int pair_forward_blocks = width == 128  ? 2
                                           : width == 64 ? 4
                                                         : 5;

template <class T, int width, int part_edges, bool shares>
__global__ __launch_bounds__(
    rows_attention_threads,
    (pair_forward_blocks<width>)) void attend_pairs(const RowsAttentionLaunch launch) {
  extern __shared__ __align__(128) char shared[];
  using Pairs = PairForward<T, width, part_edges, shares>;
  cuda::let_next_begin();
  cuda::wait_for_previous();
  Pairs pairs(launch, shared + threadIdx.x / 32 * Pairs::Feed::bytes);
  pairs.run();
}

template <class T, int width, int part_edges>
void launch_attend_pairs(const RowsAttentionLaunch& launch, Stream stream) {
  shares_rows(launch) ? launch_pairs<PairForward<T, width, part_edges, true>>(
                            attend_pairs<T, width, part_edges, true>, launch, stream)
                      : launch_pairs<PairForward<T, width, part_edges, false>>(
                            attend_pairs<T, width, part_edges, false>, launch, stream);
}

}  // namespace tessera::ops::ahead
