// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/dot_windows.cuh"
#include "ops/attention/cuda/short/gradient_results.cuh"
#include "ops/attention/cuda/short/row_states.cuh"
#include "ops/attention/cuda/short/weighted_tiles.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of dot products over windows of 16 rows: with dS of row_states.cuh
///
///     dQ = scale dS K,   dK = scale dS^T Q,   dV = P^T dO
///
/// The sweep over windows of targets gives dQ, that over windows of sources dK and dV.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class ShortGradient : public ShortPass {
  using Windows = DotWindows<width>;
  using Tile = StepTile<width>;
  static constexpr int num_own = by_rows ? 3 : 2;
  static constexpr int num_matrices = by_rows ? 1 : 2;
  static constexpr int states_at = num_own * Tile::bytes;
  /// By rows log_sums of the window's rows, by columns states of the columns of steps.
  static constexpr int states_bytes =
      by_rows ? HeldLogSums::bytes
              : Windows::stages * tiles::step_columns * static_cast<int>(sizeof(float2));

 public:
  static constexpr int blocks = width == 64 ? 12 : by_rows ? 7 : 8;
  static constexpr bool starts_alone = true;
  static constexpr int shared_bytes = states_at + states_bytes + Windows::bytes;

  __device__ ShortGradient(const WindowsLaunch& launch, char* memory)
      : launch_(launch), memory_(memory), unit_(launch.scale * log2_of_e) {}

  /// Pieces [begin, end), be they of one window or another.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    Windows::walk(*this, launch_, begin, end, memory_ + states_at + states_bytes);
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr) store_scale_sum();
    }
  }

  __device__ void start_own(const tiles::Piece& piece) const {
    start_own(0, piece, launch_.target, launch_.target_stride);
    start_own(1, piece, launch_.own_values, launch_.own_values_stride);
    if constexpr (by_rows) {
      start_own(2, piece, launch_.own_output, launch_.own_output_stride);
      HeldLogSums(memory_ + states_at).start(launch_, piece);
    }
  }
  __device__ void clear() {
#pragma unroll
    for (RowSums<T, width>& sums : sums_) sums = {};
  }
  __device__ void begin(const tiles::Piece& piece) {
    own_scores_.load(own_tile(0));
    own_values_.load(own_tile(1));
    if constexpr (by_rows) find_states(piece);
  }
  /// What the sweep over rows left of the targets of a step.
  __device__ void start_step(int stage, const VertexId* columns) const {
    if constexpr (!by_rows) {
      const int lane = WarpLane::number();
      if (lane < tiles::step_columns) {
        cuda::copy_8_async(cuda::shared_address(step_states(stage) + lane),
                           row_state_at(launch_, columns[lane]));
      }
    }
  }

  __device__ void add(int stage, std::uint32_t bits, const Tile& met_scores,
                      const Tile& met_values) {
    StepCells scores, products;
    own_scores_.template multiply<T>(met_scores, scores);
    own_values_.template multiply<T>(met_values, products);
    weigh(stage, bits, scores, products);
    add_weighted(sums_[0], operands_of<T>(scores), met_scores);
    if constexpr (!by_rows) add_weighted(sums_[1], operands_of<T>(products), met_values);
  }

  __device__ void finish(const tiles::Piece& piece) {
    using Results = ShortGradientResults<T, width, num_matrices>;
    typename Results::Matrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, launch_.scale};
    if constexpr (!by_rows) matrices[1] = {launch_.output, launch_.output_stride, 1.0f};
    const Results results(launch_, piece, matrices);
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        results.store_row(m, WarpLane::group() + 8 * row, row, sums_[m].features);
      }
    }
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr && piece.num_steps > 0) add_to_scale();
    }
    results.finish();
  }

 private:
  __device__ Tile own_tile(int m) const { return Tile(memory_ + m * Tile::bytes); }
  __device__ void start_own(int m, const tiles::Piece& piece, const void* matrix,
                            std::int64_t stride) const {
    const FeatureRows rows(matrix, stride, width, Tile::unit_of_lane() * 8);
    own_tile(m).start(rows, piece.first_row, piece.num_rows);
  }
  __device__ float2* step_states(int stage) const {
    return reinterpret_cast<float2*>(memory_ + states_at) + stage * tiles::step_columns;
  }

  /// By rows, of rows g and g + 8: D are the products of dO with O of the same row, which one lane
  /// of four has.
  __device__ void find_states(const tiles::Piece& piece) {
    StepCells products;
    own_values_.template multiply<T>(own_tile(2), products);
    const bool has_them = WarpLane::quarter() == WarpLane::group() / 2;
    const bool odd = WarpLane::group() % 2 != 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float* const pair = products.of[row] + 2 * row;
      const float dot = has_them ? (odd ? pair[1] : pair[0]) : 0.0f;
      const float log_sum = HeldLogSums(memory_ + states_at).load(row);
      states_[row] = make_row_state(launch_, piece, row, log_sum, dot);
    }
  }

  __device__ void weigh(int stage, std::uint32_t bits, StepCells& scores,
                        StepCells& products) const {
    if constexpr (by_rows) {
      weigh_cells(scores, products, unit_, bits, [&](int, int k) { return states_[k / 2]; });
    } else {
      const auto* const pairs =
          reinterpret_cast<const float4*>(step_states(stage)) + WarpLane::quarter();
      const float4 of_columns[2] = {pairs[0], pairs[4]};
      weigh_cells(scores, products, unit_, bits, [&](int i, int k) {
        return k % 2 == 0 ? float2{of_columns[i].x, of_columns[i].y}
                          : float2{of_columns[i].z, of_columns[i].w};
      });
    }
  }

  /// The gradient of the scale is the sum of Q times dQ / scale. A row without edges adds nothing,
  /// whatever it is.
  __device__ void add_to_scale() {
    float sum = 0;
#pragma unroll
    for (int group = 0; group < width / 8; ++group) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float2 own = unpacked<T>(own_scores_.of[group / 2][group % 2 * 2 + row]);
        const float* const sums = sums_[0].features[group] + 2 * row;
        sum += sums[0] == 0 ? 0.0f : own.x * sums[0];
        sum += sums[1] == 0 ? 0.0f : own.y * sums[1];
      }
    }
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

  const WindowsLaunch& launch_;
  char* memory_;
  float unit_;  ///< of scores, in powers of two
  double scale_sum_ = 0;
  float2 states_[2];  ///< by rows, of rows g and g + 8
  HeldRows<width> own_scores_, own_values_;
  RowSums<T, width> sums_[num_matrices];
};

}  // namespace tessera::ops
