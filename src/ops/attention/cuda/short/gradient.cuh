// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "ops/attention/cuda/short/direct_rows.cuh"
#include "ops/attention/cuda/short/gradient_results.cuh"
#include "ops/attention/cuda/short/row_states.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of dot products over windows of 16 rows: with dS of row_states.cuh
///
///     dQ = scale dS K,   dK = scale dS^T Q,   dV = P^T dO
///
/// The sweep over windows of targets gives dQ, that over windows of sources dK and dV. Rows that
/// meet those of the window come a step ahead; when they are weighted they are read again, then
/// from the cache nearby.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class ShortGradient {
  using Own = OwnRows<width>;
  static constexpr int num_own = by_rows ? 3 : 2;

 public:
  static constexpr int shared_bytes =
      num_own * Own::bytes + HeldPieces::bytes + (by_rows ? HeldLogSums::bytes : 0);

  __device__ ShortGradient(const TallAttentionLaunch& launch, char* memory)
      : launch_(launch),
        own_scores_(memory, launch.target, launch.target_stride),
        own_values_(memory + Own::bytes, launch.own_values, launch.own_values_stride),
        own_outputs_(memory + (num_own - 1) * Own::bytes, launch.own_output,
                     launch.own_output_stride),
        pieces_(memory + num_own * Own::bytes),
        log_sums_(memory + num_own * Own::bytes + HeldPieces::bytes),
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
  /// Where there are registers for their addresses.
  static constexpr bool holds_pieces = by_rows || width == 64;

  __device__ void run_some(std::int32_t begin, std::int32_t end) {
    using Walk = StepWalk<std::conditional_t<width == 64, StepColumns, ExchangedColumns>>;
    Walk walk(launch_, begin, end);
    typename Walk::Step step, next;
    if (walk.advance(step)) load_met(step);
    next = step;
    walk.advance(next);
    tiles::Piece piece = launch_.pieces[begin];
    start_piece(piece, begin);
    for (std::int32_t i = begin; i < end; ++i) {
      begin_piece(piece);
      for (int left = piece.num_steps; left > 0; --left) {
        StepCells scores, products;
        met_scores_.multiply(own_scores_, 0, scores);
        met_values_.multiply(own_values_, 0, products);
        // All that was asked for has arrived: what is to be known of it is found before more is.
        const bool found = walk.find();
        weigh_cells(scores, products, unit_, step.bits(),
                    [&](int i, int k) { return states_[by_rows ? k / 2 : 2 * i + k % 2]; });
        load_met(next);
        add(step, scores, products);
        step = next;
        if (found) walk.load(next);
      }
      const tiles::Piece done = holds_pieces ? pieces_.load(i % 2) : launch_.pieces[i];
      if (i + 1 < end) {
        piece = launch_.pieces[i + 1];
        start_piece(piece, i + 1);
      }
      finish(done);
    }
  }

  /// What belongs to the columns of a step.
  __device__ void load_met(const StepColumns& columns) {
    met_scores_.load(columns);
    met_values_.load(columns);
    if constexpr (!by_rows) {
#pragma unroll
      for (int i = 0; i < 4; ++i) states_[i] = __ldg(row_state_at(launch_, columns.weighted[i]));
    }
  }

  /// Asks for what belongs to the rows of piece i.
  __device__ void start_piece(const tiles::Piece& piece, std::int32_t i) {
    if constexpr (holds_pieces) pieces_.start(launch_.pieces + i, i % 2);
    own_scores_.start(piece, 0);
    own_values_.start(piece, 0);
    if constexpr (by_rows) {
      own_outputs_.start(piece, 0);
      log_sums_.start(launch_, piece);
    }
    cuda::commit_copies();
  }
  __device__ void begin_piece(const tiles::Piece& piece) {
    cuda::wait_for_copies<0>();
    if constexpr (holds_pieces) __syncwarp();
#pragma unroll
    for (FeatureSums<T, width>& sums : sums_) sums.clear();
    if constexpr (by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        float dot = 0;
#pragma unroll
        for (int chunk = 0; chunk < Own::chunks; ++chunk) {
          dot = add_unit_product<T>(own_values_.load(chunk, row, 0),
                                    own_outputs_.load(chunk, row, 0), dot);
        }
        states_[row] = make_row_state(launch_, piece, row, log_sums_.load(row), dot);
      }
    }
  }

  __device__ void add(const StepColumns& columns, const StepCells& gradients,
                      const StepCells& weights) {
    const StepOperands<T> of_scores(gradients);
    WeightedRows rows;
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      rows.load(score_rows_, columns, chunk);
      sums_[0].add(of_scores, chunk, rows.held);
    }
    if constexpr (!by_rows) {
      const StepOperands<T> of_values(weights);
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        rows.load(value_rows_, columns, chunk);
        sums_[1].add(of_values, chunk, rows.held);
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
      sums_[m].row(chunk, i / 2 % 2, i % 2, features);
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
    float own[8];
    widen_unit<T>(load_unit(queries, piece.first_row + place, 0), own);
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
    const std::int64_t worker = std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
    if (WarpLane::number() == 0) launch_.scale_sums[worker] = scale_sum_;
  }

  const TallAttentionLaunch& launch_;
  OwnRows<width> own_scores_, own_values_, own_outputs_;
  HeldPieces pieces_;
  HeldLogSums log_sums_;  ///< by rows
  MetRows<T, width> met_scores_, met_values_;
  FeatureRows score_rows_, value_rows_;
  float unit_;
  double scale_sum_ = 0;
  /// By rows of rows g and g + 8, by columns of columns 2q, 2q + 1, 2q + 8, 2q + 9.
  float2 states_[by_rows ? 2 : 4];
  FeatureSums<T, width> sums_[num_matrices];
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_gradient_blocks = width == 64 ? 12 : 8;

template <class T, int width, bool by_rows>
__global__ __launch_bounds__(32, (short_gradient_blocks<width>)) void differentiate_short_windows(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGradient<T, width, by_rows>>(launch);
}

template <class T, bool by_rows>
constexpr ShortAttentionFunctions make_short_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortGradient<T, short_head_widths[i], by_rows>,
                       differentiate_short_windows<T, short_head_widths[i], by_rows>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
