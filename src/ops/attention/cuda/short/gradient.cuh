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
/// of sources, which gives dK and dV. Gathered rows meet those of the window, and are weighted.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class ShortGradient {
 public:
  using Rows = StepRows<width>;
  /// Rows that scores are made of, rows that values are, and by columns the states of targets.
  static constexpr int slot_bytes =
      2 * Rows::bytes + (by_rows ? 0 : 16 * static_cast<int>(sizeof(float2)));
  static constexpr int stages = width == 64 ? 3 : 2;
  static constexpr int own_bytes = (by_rows ? 3 : 2) * Rows::bytes;

  __device__ ShortGradient(const TallAttentionLaunch& launch, char* own)
      : launch_(launch), own_(own), unit_(launch.scale * log2_of_e) {}

  __device__ void start(char* memory, VertexId column) const {
    const std::uint32_t to = cuda::shared_address(memory);
    Rows::start(to, {launch_.source, launch_.source_stride, width, 0}, column);
    Rows::start(to + Rows::bytes, {launch_.value, launch_.value_stride, width, 0}, column);
    if constexpr (!by_rows) {
      const int lane = WarpLane::number();
      if (lane < 16) cuda::copy_8_async(to + 2 * Rows::bytes + lane * 8, state_at(column));
    }
  }
  __device__ void start_own(const tiles::Piece& piece) {
    const std::uint32_t to = cuda::shared_address(own_);
    Rows::start(to, {launch_.target, launch_.target_stride, width, 0}, piece.first_row,
                piece.num_rows);
    Rows::start(to + Rows::bytes, {launch_.own_values, launch_.own_values_stride, width, 0},
                piece.first_row, piece.num_rows);
    if constexpr (by_rows) {
      Rows::start(to + 2 * Rows::bytes, {launch_.own_output, launch_.own_output_stride, width, 0},
                  piece.first_row, piece.num_rows);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int place = WarpLane::group() + 8 * row;
        const std::int64_t vertex = std::int64_t{piece.first_row} + place;
        const float* const from = launch_.log_sum + vertex * launch_.log_sum_stride + blockIdx.y;
        log_sums_[row] = place < piece.num_rows ? __ldg(from) * log2_of_e : 0.0f;
      }
    }
  }

  __device__ void clear() {
#pragma unroll
    for (FeatureSums<T, width>& sums : sums_) sums.clear();
  }
  __device__ void begin(const tiles::Piece& piece) {
    if constexpr (by_rows) find_states(piece);
  }
  __device__ void multiply(const char* step) {
    scores_ = {};
    products_ = {};
    scores_.template add_products<T, width>(own_, step);
    products_.template add_products<T, width>(own_ + Rows::bytes, step + Rows::bytes);
  }
  __device__ void add(const char* step, std::uint32_t bits) {
    weigh(step, bits);
    sums_[0].add(StepOperands<T>(scores_), step);
    if constexpr (!by_rows) sums_[1].add(StepOperands<T>(products_), step + Rows::bytes);
  }

  __device__ void finish(const tiles::Piece& piece) {
    using Results = ShortGradientResults<T, width, num_matrices>;
    typename Results::Matrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, launch_.scale};
    if constexpr (!by_rows) matrices[1] = {launch_.output, launch_.output_stride, 1.0f};
    const Results results(launch_, piece, matrices);
    constexpr int chunks = FeatureSums<T, width>::chunks;
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

  /// After the last piece.
  __device__ void end() {
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr) store_scale_sum();
    }
  }

 protected:
  static constexpr int num_matrices = by_rows ? 1 : 2;

  __device__ float2* state_at(std::int64_t row) const {
    return static_cast<float2*>(launch_.row_state) + row * launch_.heads + blockIdx.y;
  }

  /// Of rows g and g + 8.
  __device__ void find_states(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      float dot = 0;
#pragma unroll
      for (int unit = WarpLane::quarter(); unit < Rows::units; unit += 4) {
        dot = product(Rows::load(own_ + Rows::bytes, place, unit),
                      Rows::load(own_ + 2 * Rows::bytes, place, unit), dot);
      }
      dot += __shfl_xor_sync(~0u, dot, 1);
      dot += __shfl_xor_sync(~0u, dot, 2);
      states_[row] = {log_sums_[row], dot};
      if (WarpLane::quarter() == 0 && place < piece.num_rows) {
        *state_at(std::int64_t{piece.first_row} + place) = states_[row];
      }
    }
  }
  __device__ static float product(const uint4& a, const uint4& b, float sum) {
    float x[8], y[8];
    widen(a, x);
    widen(b, y);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(x[i], y[i], sum);
    return sum;
  }
  __device__ static void widen(const uint4& raw, float (&values)[8]) {
    cuda::Vector<T, 16> vector;
    vector.raw = raw;
    vector.widen_to(values);
  }

  /// Scores become gradients of scores, products of values weights.
  __device__ void weigh(const char* step, std::uint32_t bits) {
    float2 states[2][2];  // by rows of rows g and g + 8; by columns of columns 2q and 2q + 1 on
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (by_rows) {
        states[i][0] = states[i][1] = states_[i];
      } else {
        const auto* const of_columns = reinterpret_cast<const float4*>(step + 2 * Rows::bytes);
        const float4 both = of_columns[4 * i + WarpLane::quarter()];
        states[i][0] = {both.x, both.y};
        states[i][1] = {both.z, both.w};
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 state = by_rows ? states[k / 2][0] : states[i][k % 2];
        const float weight = power_of_2(fmaf(scores_.of[i][k], unit_, -state.x));
        const bool exists = StepCells::exists(bits, i, k);
        scores_.of[i][k] = exists ? weight * (products_.of[i][k] - state.y) : 0.0f;
        products_.of[i][k] = exists ? weight : 0.0f;
      }
    }
  }

  /// The gradient of the scale is the sum of Q times dQ / scale. A row without edges adds nothing,
  /// whatever it is.
  __device__ void add_to_scale(const tiles::Piece& piece, int place, int feature,
                               const float (&sums)[8]) {
    if (launch_.scale_sums == nullptr || place >= piece.num_rows || piece.num_steps == 0) return;
    const FeatureRows queries(launch_.target, launch_.target_stride, width, feature);
    float own[8];
    widen(__ldg(reinterpret_cast<const uint4*>(queries.at(piece.first_row + place))), own);
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
  /// Rows that scores are made of, rows that values are, and by rows O.
  char* own_;
  float unit_;
  double scale_sum_ = 0;
  float log_sums_[2];  ///< by rows: of the window that was asked for last
  float2 states_[2];   ///< by rows, of rows g and g + 8: log_sum in powers of two, and D
  StepCells scores_, products_;
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
