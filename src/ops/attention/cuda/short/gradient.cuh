// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/gradient_results.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of dot products over windows of 16 rows. With P the weights, which come again
/// from the scores and `log_sum`, and D = dO . O of a target,
///
///     dS = P (dO . V - D),   dQ = scale dS K,   dK = scale dS^T Q,   dV = P^T dO
///
/// One sweep over windows of targets gives dQ, and leaves log_sum and D for the other, over windows
/// of sources, which gives dK and dV. Rows that meet those of the window come a step ahead; when
/// they are weighted they are read again, then from the cache nearby.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class ShortGradient {
 public:
  static constexpr int num_own = by_rows ? 3 : 2;
  using Memory = typename OwnRows<T, width>::Memory[num_own];

  __device__ ShortGradient(const TallAttentionLaunch& launch, Memory& memory)
      : launch_(launch),
        own_scores_(memory[0], launch.target, launch.target_stride),
        own_values_(memory[1], launch.own_values, launch.own_values_stride),
        own_outputs_(memory[num_own - 1], launch.own_output, launch.own_output_stride),
        met_scores_(launch.source, launch.source_stride),
        met_values_(launch.value, launch.value_stride),
        score_rows_(launch.source, launch.source_stride, width, WarpLane::group() * 8),
        value_rows_(launch.value, launch.value_stride, width, WarpLane::group() * 8),
        unit_(launch.scale * log2_of_e) {}

  /// Pieces [begin, end), be they of one window or another.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin < end) run_some(begin, end);
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr) store_scale_sum();
    }
  }

 private:
  static constexpr int chunks = width / 64;
  static constexpr int num_matrices = by_rows ? 1 : 2;

  __device__ void run_some(std::int32_t begin, std::int32_t end) {
    StepWalk walk(launch_, begin, end);
    StepWalk::Step step, next;
    if (walk.advance(step)) load_met(step);
    next = step;
    walk.advance(next);
    tiles::Piece piece = launch_.pieces[begin];
    start_piece(piece);
    for (std::int32_t i = begin; i < end; ++i) {
      begin_piece(piece);
      for (int left = piece.num_steps; left > 0; --left) {
        StepCells scores, products;
        met_scores_.multiply(own_scores_, scores);
        met_values_.multiply(own_values_, products);
        weigh(step.bits, scores, products);
        load_met(next);
        add(step, scores, products);
        step = next;
        walk.advance(next);
      }
      const tiles::Piece done = piece;
      if (i + 1 < end) {
        piece = launch_.pieces[i + 1];
        start_piece(piece);
      }
      finish(done);
    }
  }

  /// What belongs to the columns of a step.
  __device__ void load_met(const StepWalk::Step& step) {
    met_scores_.load(step);
    met_values_.load(step);
    if constexpr (!by_rows) {
#pragma unroll
      for (int column = 0; column < 4; ++column) {
        states_[column] = __ldg(state_at(step.weighted[column]));
      }
    }
  }
  __device__ float2* state_at(std::int64_t row) const {
    return static_cast<float2*>(launch_.row_state) + row * launch_.heads + blockIdx.y;
  }

  /// Asks for what belongs to the rows of a window.
  __device__ void start_piece(const tiles::Piece& piece) {
    own_scores_.start(piece);
    own_values_.start(piece);
    if constexpr (by_rows) {
      own_outputs_.start(piece);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int place = WarpLane::group() + 8 * row;
        const std::int64_t vertex = std::int64_t{piece.first_row} + place;
        const float* const from = launch_.log_sum + vertex * launch_.log_sum_stride + blockIdx.y;
        log_sums_[row] = place < piece.num_rows ? __ldg(from) * log2_of_e : 0.0f;
      }
    }
    cuda::commit_copies();
  }
  __device__ void begin_piece(const tiles::Piece& piece) {
    cuda::wait_for_copies<0>();
#pragma unroll
    for (auto& of_matrix : sums_) {
#pragma unroll
      for (FeatureSums<T>& sums : of_matrix) sums.clear();
    }
    if constexpr (by_rows) find_states(piece);
  }

  /// Of rows g and g + 8.
  __device__ void find_states(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float dot = 0;
#pragma unroll
      for (int chunk = 0; chunk < OwnRows<T, width>::chunks; ++chunk) {
        dot = product(own_values_.load(chunk, row), own_outputs_.load(chunk, row), dot);
      }
      dot += __shfl_xor_sync(~0u, dot, 1);
      dot += __shfl_xor_sync(~0u, dot, 2);
      states_[row] = {log_sums_[row], dot};
      const int place = WarpLane::group() + 8 * row;
      if (WarpLane::quarter() == 0 && place < piece.num_rows) {
        *state_at(std::int64_t{piece.first_row} + place) = states_[row];
      }
    }
  }
  __device__ static float product(const uint4& a, const uint4& b, float sum) {
    cuda::Vector<T, 16> left, right;
    left.raw = a;
    right.raw = b;
    float x[8], y[8];
    left.widen_to(x);
    right.widen_to(y);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(x[i], y[i], sum);
    return sum;
  }

  /// Scores become gradients of scores, products of values weights.
  __device__ void weigh(std::uint32_t bits, StepCells& scores, StepCells& products) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 state = states_[by_rows ? k / 2 : 2 * i + k % 2];
        float weight = power_of_2(fmaf(scores.of[i][k], unit_, -state.x));
        const bool exists = StepCells::exists(bits, i, k);
        scores.of[i][k] = exists ? weight * (products.of[i][k] - state.y) : 0.0f;
        products.of[i][k] = exists ? weight : 0.0f;
      }
    }
  }

  __device__ void add(const StepWalk::Step& step, const StepCells& gradients,
                      const StepCells& weights) {
    const StepOperands<T> of_scores(gradients);
    WeightedRows<T> rows;
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      rows.load(score_rows_, step, chunk);
      sums_[0][chunk].add(of_scores, rows);
    }
    if constexpr (!by_rows) {
      const StepOperands<T> of_values(weights);
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        rows.load(value_rows_, step, chunk);
        sums_[1][chunk].add(of_values, rows);
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    using Results = ShortGradientResults<T, width, num_matrices>;
    typename Results::Matrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, launch_.scale};
    if constexpr (!by_rows) matrices[1] = {launch_.output, launch_.output_stride, 1.0f};
    const Results results(launch_, piece, matrices);
#pragma unroll
    for (int i = 0; i < num_matrices * chunks * 4; ++i) {
      const int m = i / (chunks * 4);
      const int chunk = i / 4 % chunks;
      const int place = 8 * (i / 2 % 2) + 2 * WarpLane::quarter() + i % 2;
      const int feature = chunk * 64 + WarpLane::group() * 8;
      float features[8];
      sums_[m][chunk].row(i / 2 % 2, i % 2, features);
      results.store(m, place, feature, features);
      if constexpr (by_rows) add_to_scale(piece, place, feature, features);
    }
    results.finish();
  }

  /// The gradient of the scale is the sum of Q times dQ / scale. A row without edges adds nothing,
  /// whatever it is.
  __device__ void add_to_scale(const tiles::Piece& piece, int place, int feature,
                               const float (&sums)[8]) {
    if (launch_.scale_sums == nullptr || place >= piece.num_rows || piece.num_steps == 0) return;
    const FeatureRows queries(launch_.target, launch_.target_stride, width, feature);
    cuda::Vector<T, 16> loaded;
    loaded.raw = queries.load(piece.first_row + place, 0);
    float own[8];
    loaded.widen_to(own);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += sums[i] == 0 ? 0.0f : own[i] * sums[i];
    scale_sum_ += static_cast<double>(sum);
  }
  __device__ void store_scale_sum() {
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) {
      scale_sum_ += __shfl_xor_sync(~0u, scale_sum_, distance);
    }
    const std::int64_t worker = std::int64_t{blockIdx.y} * launch_.num_workers + short_worker();
    if (WarpLane::number() == 0) launch_.scale_sums[worker] = scale_sum_;
  }

  const TallAttentionLaunch& launch_;
  OwnRows<T, width> own_scores_, own_values_, own_outputs_;
  MetRows<T, width> met_scores_, met_values_;
  FeatureRows score_rows_, value_rows_;
  float unit_;
  double scale_sum_ = 0;
  float log_sums_[2];  ///< by rows: of the piece that was asked for last
  /// log_sum in powers of two, and D: by rows of rows g and g + 8, by columns of columns 2q,
  /// 2q + 1, 2q + 8, 2q + 9.
  float2 states_[by_rows ? 2 : 4];
  FeatureSums<T> sums_[num_matrices][chunks];
};

/// Blocks that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_gradient_blocks = width == 64 ? 6 : 4;

template <class T, int width, bool by_rows>
__global__ __launch_bounds__(
    short_attention_warps * 32,
    (short_gradient_blocks<width>)) void differentiate_short_windows(const TallAttentionLaunch
                                                                         launch) {
  using Pass = ShortGradient<T, width, by_rows>;
  __shared__ typename Pass::Memory memory;
  run_short_windows<Pass>(launch, memory);
}

template <class T, bool by_rows>
constexpr ShortAttentionFunctions make_short_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<differentiate_short_windows<T, short_head_widths[i], by_rows>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
