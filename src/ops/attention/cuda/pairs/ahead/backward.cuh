// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "ops/attention/cuda/pairs/ahead/feed.cuh"
#include "ops/attention/cuda/pairs/ahead/sums.cuh"
#include "ops/attention/cuda/pairs/launch.hpp"
#include "ops/attention/cuda/pairs/scores.cuh"

/// The backward pass of GATv2: with P the weights, which come again from the scores and `log_sum`,
/// D = dO . O of a target and z = x[i] + y[j],
///
///     dS    = P (dO[i] . V[j] - D[i])
///     dx[i] = a * sum over j of dS leaky_relu'(z),   dy[j] = a * sum over i of the same
///     dV[j] = sum over i of P dO[i],                 da    = sum of dS leaky_relu(z)
///
/// leaky_relu' is s + (1 - s) [z > 0], so that dx and dy are made of sums of dS where z > 0, to
/// which s times the sum of dS is added; over the sources of a target that is 0. These sums are
/// products with a matrix of 0 and 1: one comparison makes two of its numbers. As leaky_relu(z) is
/// leaky_relu' times x plus the same times y, da is what every target's sums times its x and every
/// source's times its y add up to. The sweep over rows gives dx, that over columns dy and dV.
namespace tessera::ops::ahead {

/// Of two features 1 where a is greater than b, else 0, in bf16.
template <class T>
__device__ std::uint32_t greater_ones(std::uint32_t a, std::uint32_t b) {
  if constexpr (std::is_same_v<T, __half>) {
    return 0x3f803f80u &
           __hgt2_mask(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
  } else {
    const __nv_bfloat162 greater = __hgt2(reinterpret_cast<const __nv_bfloat162&>(a),
                                          reinterpret_cast<const __nv_bfloat162&>(b));
    return reinterpret_cast<const std::uint32_t&>(greater);
  }
}

/// `shares`: values are the sources, and by rows they are gathered once.
template <class T, int width, int part_edges, bool by_rows, bool shares>
class PairGradient {
  static_assert(by_rows || !shares);
  using Row = LaneRow<T, width>;
  using Edges = PairEdges<part_edges>;
  using Lanes = PartLanes<part_edges>;
  /// Gradients of scores are bf16 numbers, whatever features are: they may be small.
  using ScoreSums = PartSums<__nv_bfloat16, width>;
  using ValueSums = PartSums<T, width>;
  static constexpr int tiles = ScoreSums::tiles;
  static constexpr int units = width / 8;
  static constexpr float lift = std::is_same_v<T, __half> ? 1 << 14 : 1;  ///< of weights
  static constexpr PairReads reads = {.num_own = by_rows ? 3 : 2,
                                      .num_met = shares ? 1 : 2,
                                      .log_sums = by_rows,
                                      .states = !by_rows,
                                      .ahead = shares ? 2 : 1};

 public:
  using Feed = PairFeed<T, width, part_edges, reads>;

  __device__ PairGradient(const RowsAttentionLaunch& launch, char* memory)
      : launch_(launch), scores_(launch.vector, launch.slope), feed_(launch, memory) {}

  __device__ void run() {
    feed_.for_items([&] { begin(); }, [&] { step(); },
                    [&](unsigned item) { finish(feed_.result(item, Lanes::part())); });
    if (launch_.vector_sums != nullptr) store_vector_sums();
  }

 private:
  /// This warp's part of the gradient of a.
  __device__ void store_vector_sums() const {
    float* const to =
        launch_.vector_sums + std::int64_t{warp_of_grid()} * launch_.heads * width + first_at();
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
      float sum = vector_sums_[unit] + __shfl_xor_sync(~0u, vector_sums_[unit], 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      if (WarpLane::quarter() == 0) to[unit * 8] = sum;
    }
  }

  struct State {
    float log_sum = 0;  ///< in powers of two
    float dot = 0;      ///< dO . O
  };

  __device__ void begin() {
    Row own[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own[half] = feed_.own(0, Edges::part_of(half));
      left_[half] = feed_.count(Edges::part_of(half)) - Edges::slot();
    }
    score_sums_.clear();
    total_.clear();
    if constexpr (!by_rows) value_sums_.clear();
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      feed_.load_own_tile(minus_own_[tile], 0, tile);
#pragma unroll
      for (std::uint32_t& pair : minus_own_[tile]) pair ^= 0x80008000u;
    }
    scores_.begin(own);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Where a half has two rows, columns 0 and 1 of products are of the first, 2 and 3 of the
      // second, and so on.
      const int of_column =
          half * Edges::parts_of_half + WarpLane::group() / 2 % Edges::parts_of_half;
      const Row values = feed_.own(1, of_column);
#pragma unroll
      for (int chunk = 0; chunk < Row::chunks; ++chunk) {
        own_values_[half][chunk] = MetFeatures(values.of[chunk]);
      }
      if constexpr (by_rows) find_state(half);
    }
  }

  /// By rows, of this lane's row of a half; the other sweep will want it.
  __device__ void find_state(int half) {
    const int part = Edges::part_of(half);
    const VertexId row = feed_.row(part);
    const float log_sum = feed_.log_sum(part);
    const float dot = product_with(feed_.own(2, part), half);
    // Pieces of one row write the same.
    if (row >= 0 && Edges::slot() == 0 && WarpLane::quarter() == 0) {
      launch_.row_state[row * launch_.heads + blockIdx.y] = {log_sum, dot};
    }
    states_[half] = {log_sum * log2_of_e, dot};
  }
  __device__ State state_of(int half) const {
    if constexpr (by_rows) return states_[half];
    const float2 state = feed_.state(half);
    return {state.x * log2_of_e, state.y};
  }

  __device__ void step() {
    Row met[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) met[half] = feed_.met(0, half);
    float scores[2], gradients[2], weights[2];
    scores_.find(scores, met);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const State state = state_of(half);
      const float product = product_with(shares ? met[half] : feed_.met(1, half), half);
      const bool exists = left_[half] > 0;
      left_[half] -= feed_.turn();
      const float weight = exists ? power_of_2(scores[half] - state.log_sum) : 0.0f;
      gradients[half] = exists ? weight * (product - state.dot) : 0.0f;
      weights[half] = weight * lift;
    }
    add(gradients, weights);
  }
  __device__ void add(const float (&gradients)[2], const float (&weights)[2]) {
    const auto of_scores =
        EdgeOperand<__nv_bfloat16>::template of_parts<part_edges>(gradients, feed_.has_one_row());
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      std::uint32_t features[4];
      feed_.load_tile(features, 0, tile);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        features[i] = greater_ones<T>(features[i], minus_own_[tile][i]);
      }
      score_sums_.add(tile, features, of_scores);
    }
    if constexpr (!by_rows) {
      constexpr std::uint32_t ones = 0x3f803f80u;
      total_.add(0, {ones, ones, ones, ones}, of_scores);
      const auto of_values =
          EdgeOperand<T>::template of_parts<part_edges>(weights, feed_.has_one_row());
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        std::uint32_t features[4];
        feed_.load_tile(features, 1, tile);
        value_sums_.add(tile, features, of_values);
      }
    }
  }
  /// Of a row that this lane's edge of a half leads to with the own values of its row: of two rows
  /// of a half, each lane finds one. All lanes together.
  __device__ float product_with(const Row& met, int half) const {
    EdgeProducts products;
#pragma unroll
    for (int chunk = 0; chunk < Row::chunks; ++chunk) {
      products.add<T>(met.of[chunk], own_values_[half][chunk]);
    }
    const float found = products.total();
    if constexpr (Edges::parts_of_half == 1) return found;
    const float other = __shfl_xor_sync(~0u, found, 1);
    return WarpLane::quarter() % 2 == WarpLane::group() / part_edges ? found : other;
  }
  __device__ void finish(const PairResult& result) {
    // By rows dS add up to 0, but for rounding.
    const float sloped = by_rows ? 0.0f : launch_.slope * total_.sum(0);
    // A read-only load could move ahead of the wait for the kernel that wrote it.
    const T* const vector = static_cast<const T*>(launch_.vector) + first_at();
    float of_scores[units], of_values[units];
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
      const float sum = fmaf(1 - launch_.slope, score_sums_.sum(unit), sloped);
      if (result.row >= 0) add_to_vector(unit, sum);
      of_scores[unit] = result.has_edges ? sum * cuda::widen(vector[unit * 8]) : 0.0f;
      if constexpr (!by_rows) of_values[unit] = value_sums_.sum(unit) / lift;
    }
    store(result, of_scores, of_values);
  }
  /// A row without edges adds nothing, whatever it is.
  __device__ void add_to_vector(int unit, float sum) {
    if (launch_.vector_sums == nullptr || sum == 0) return;
    const T feature = feed_.own_feature(0, Lanes::part(), unit * 8 + WarpLane::group());
    vector_sums_[unit] = fmaf(cuda::widen(feature), sum, vector_sums_[unit]);
  }

  /// Of this lane's first feature.
  __device__ static std::int64_t first_at() {
    return std::int64_t{blockIdx.y} * width + WarpLane::group();
  }
  /// A slot holds the gradients of scores of all heads, then those of values.
  __device__ float* slot_at(int slot, int matrix) const {
    return launch_.slots + slot * launch_.slot_size + matrix * launch_.heads * width + first_at();
  }
  __device__ void store(const PairResult& result, float (&of_scores)[units],
                        float (&of_values)[units]) const {
    if (result.is_cut()) {
      if (result.row >= 0) {
#pragma unroll
        for (int unit = 0; unit < units; ++unit) {
          slot_at(result.piece.slot, 0)[unit * 8] = of_scores[unit];
          if constexpr (!by_rows) slot_at(result.piece.slot, 1)[unit * 8] = of_values[unit];
        }
      }
      if (!is_last_piece(launch_, result.piece)) return;
      if (result.row >= 0) {
        join(result.piece, 0, of_scores);
        if constexpr (!by_rows) join(result.piece, 1, of_values);
      }
    }
    if (result.row < 0) return;
    put(launch_.score_gradient, result.row, of_scores);
    if constexpr (!by_rows) put(launch_.value_gradient, result.row, of_values);
  }
  __device__ void join(const RowPiece& piece, int matrix, float (&sums)[units]) const {
#pragma unroll
    for (float& sum : sums) sum = 0;
    for (int k = 0; k < piece.num_slots; ++k) {
      const float* const slot = slot_at(piece.first_slot + k, matrix);
#pragma unroll
      for (int unit = 0; unit < units; ++unit) sums[unit] += __ldcg(slot + unit * 8);
    }
  }
  __device__ void put(const AttentionSums& to, VertexId row, const float (&sums)[units]) const {
    if (to.data == nullptr) return;
    T* const from = static_cast<T*>(to.data) + row * to.stride + first_at();
#pragma unroll
    for (int unit = 0; unit < units; ++unit) from[unit * 8] = cuda::narrow<T>(sums[unit]);
  }

  const RowsAttentionLaunch& launch_;
  EdgeScores<T, width> scores_;
  Feed feed_;
  MetFeatures own_values_[2][Row::chunks];
  State states_[2];                    ///< by rows
  int left_[2];                        ///< from this lane's edge to the last
  std::uint32_t minus_own_[tiles][4];  ///< own rows of the edges of a step, as their tiles
  ScoreSums score_sums_;               ///< of dS where z > 0
  PartSums<__nv_bfloat16, 16> total_;  ///< by columns: of dS
  ValueSums value_sums_;               ///< by columns: of P dO
  float vector_sums_[units] = {};
};

/// Blocks that an SM should hold, as registers allow.
template <int width, bool by_rows>
inline constexpr int pair_gradient_blocks = width == 32 ? (by_rows ? 5 : 4)
                                            : by_rows   ? 4
                                                        : 3;

template <class T, int width, int part_edges, bool by_rows, bool shares>
__global__ __launch_bounds__(
    rows_attention_threads,
    (pair_gradient_blocks<width, by_rows>)) void differentiate_pairs(const RowsAttentionLaunch
                                                                         launch) {
  extern __shared__ __align__(128) char shared[];
  using Pairs = PairGradient<T, width, part_edges, by_rows, shares>;
  cuda::begin_overlapped();
  Pairs pairs(launch, shared + threadIdx.x / 32 * Pairs::Feed::bytes);
  pairs.run();
}

template <class T, int width, int part_edges, bool by_rows>
void launch_differentiate_pairs(const RowsAttentionLaunch& launch, Stream stream) {
  by_rows&& shares_rows(launch)
      ? launch_pairs<PairGradient<T, width, part_edges, by_rows, by_rows>>(
            differentiate_pairs<T, width, part_edges, by_rows, by_rows>, launch, stream)
      : launch_pairs<PairGradient<T, width, part_edges, by_rows, false>>(
            differentiate_pairs<T, width, part_edges, by_rows, false>, launch, stream);
}

}  // namespace tessera::ops::ahead
