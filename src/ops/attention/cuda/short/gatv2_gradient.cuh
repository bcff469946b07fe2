// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rectified/mask_sums.cuh"
#include "ops/attention/cuda/rectified/scores.cuh"
#include "ops/attention/cuda/short/gradient_results.cuh"
#include "ops/attention/cuda/short/row_states.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of GATv2 over windows of 16 rows: what rectified/gradient.cuh computes, with
/// rows that come as in the forward pass.
namespace tessera::ops {

template <int width>
struct ShortScores : StepRows<width> {
  static constexpr int row_bytes = width * 2;
  static constexpr int block_bytes = 128;  ///< from eight units to the next
  __device__ static int unit_of_lane(int i) { return 4 * i + WarpLane::quarter(); }
};

template <class T, int width, bool by_rows>
class ShortGatV2Gradient {
  using Masks = MaskSums<T, width, ShortScores<width>, 1, 1>;
  using Minima = RectifiedScores<T, width, ShortScores<width>>;
  using Rows = StepRows<width>;

 public:
  /// Rows that scores are made of, rows that values are, and by columns the states of targets.
  static constexpr int slot_bytes =
      2 * Rows::bytes + (by_rows ? 0 : 16 * static_cast<int>(sizeof(float2)));
  static constexpr int stages = width == 64 ? 3 : 2;
  static constexpr int masks_at = (by_rows ? 3 : 2) * Rows::bytes;
  static constexpr int own_bytes = masks_at + Masks::bytes;

  __device__ ShortGatV2Gradient(const TallAttentionLaunch& launch, char* own)
      : launch_(launch), own_(own), minima_(vector(), launch.slope), masks_(own + masks_at) {}

  __device__ void start(char* memory, VertexId column) const {
    const std::uint32_t to = cuda::shared_address(memory);
    Rows::start(to, {launch_.source, launch_.source_stride, width, 0}, column);
    Rows::start(to + Rows::bytes, {launch_.value, launch_.value_stride, width, 0}, column);
    if constexpr (!by_rows) {
      const int lane = WarpLane::number();
      const std::uint32_t state = to + 2 * Rows::bytes + static_cast<std::uint32_t>(lane) * 8;
      if (lane < 16) cuda::copy_8_async(state, row_state_at(launch_, column));
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
      for (int row = 0; row < 2; ++row) log_sums_[row] = own_log_sum(launch_, piece, row);
    }
  }

  __device__ void clear() {
    masks_.clear();
    totals_[0] = totals_[1] = 0;
    if constexpr (!by_rows) value_sums_.clear();
  }
  __device__ void begin(const tiles::Piece& piece) {
    if constexpr (by_rows) find_states(piece);
    minima_.begin([&](int row, int unit) {
      return Rows::load(this->own_, WarpLane::group() + 8 * row, unit);
    });
    masks_.begin([&](int row, int unit) { return Rows::load(this->own_, row, unit); });
  }
  __device__ void multiply(const char* step) {
    products_ = {};
    products_.template add_products<T, width>(own_ + Rows::bytes, step + Rows::bytes);
  }
  __device__ void add(const char* step, std::uint32_t bits) {
    StepCells scores;
    minima_.find(scores.of, cuda::shared_address(step), used_pairs(bits));
    weigh(scores, step, bits);
    StepWeights<T> gradients;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const float* const pair = scores.of[place / 2] + place % 2 * 2;
      gradients.set(place, pair[0], pair[1]);
      totals_[place % 2] += pair[0] + pair[1];
    }
    masks_.put(0, gradients);
    __syncwarp();
    masks_.add(cuda::shared_address(step), Masks::used_rows(bits & 0x000f000fu));
    if constexpr (!by_rows) {
      value_sums_.add(StepOperands<T>(products_), step + Rows::bytes);
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    constexpr int num_matrices = by_rows ? 1 : 2;
    using Results = ShortGradientResults<T, width, num_matrices>;
    typename Results::Matrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, 1.0f};
    if constexpr (!by_rows) matrices[1] = {launch_.output, launch_.output_stride, 1.0f};
    const Results results(launch_, piece, matrices);
    float sloped[2] = {0, 0};
    if constexpr (!by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        sloped[row] = launch_.slope * Minima::over_row(totals_[row]);
      }
#pragma unroll
      for (int i = 0; i < FeatureSums<T, width>::chunks * 4; ++i) {
        const int place = 8 * (i / 2 % 2) + 2 * WarpLane::quarter() + i % 2;
        float features[8];
        value_sums_.row(i / 4, i / 2 % 2, i % 2, features);
        results.store(1, place, i / 4 * 64 + WarpLane::group() * 8, features);
      }
    }
    masks_.finish(1 - launch_.slope, sloped, vector(),
                  [&](int row, int column, float low, float high) {
                    results.store(0, row, column, low, high);
                  });
    results.finish();
    // The window's own features are overwritten by those of the next.
    __syncwarp();
  }

  /// After the last piece.
  __device__ void end() const {
    if (launch_.vector_sums == nullptr) return;
    masks_.store_vector_sums(launch_.vector_sums +
                             (std::int64_t{blockIdx.x} * launch_.heads + blockIdx.y) * width);
  }

 private:
  __device__ const T* vector() const {
    return static_cast<const T*>(launch_.vector) + std::int64_t{blockIdx.y} * width;
  }

  /// Which pairs of columns have an edge: bit 4 group + pair.
  __device__ static std::uint32_t used_pairs(std::uint32_t bits) {
    bits |= bits >> 16;
    bits |= bits >> 1;
    const int q = WarpLane::quarter();
    return __reduce_or_sync(~0u, (bits & 1u) << q | (bits & 4u) << (2 + q));
  }

  __device__ void find_states(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      float dot = 0;
#pragma unroll
      for (int unit = WarpLane::quarter(); unit < Rows::units; unit += 4) {
        dot = add_unit_product<T>(Rows::load(own_ + Rows::bytes, place, unit),
                                  Rows::load(own_ + 2 * Rows::bytes, place, unit), dot);
      }
      states_[row] = make_row_state(launch_, piece, row, log_sums_[row], dot);
    }
  }
  __device__ void weigh(StepCells& scores, const char* step, std::uint32_t bits) {
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
    weigh_cells(scores, products_, 1, bits,
                [&](int i, int k) { return by_rows ? states[k / 2][0] : states[i][k % 2]; });
  }

  const TallAttentionLaunch& launch_;
  /// Rows that scores are made of, rows that values are, and by rows O; then what masks need.
  char* own_;
  Minima minima_;
  Masks masks_;
  float log_sums_[2];  ///< by rows: of the window that was asked for last
  float2 states_[2];   ///< by rows, of rows g and g + 8
  StepCells products_;
  FeatureSums<T, width> value_sums_;  ///< by columns
  float totals_[2];                   ///< of dS, over this lane's columns
};

template <class T, bool by_rows>
__global__ __launch_bounds__(32,
                             8) void differentiate_short_gatv2(const TallAttentionLaunch launch) {
  run_short_windows<RingRun<ShortGatV2Gradient<T, 64, by_rows>>>(launch);
}

/// Of heads of 64 features.
template <class T, bool by_rows>
constexpr TallAttentionFunction make_short_gatv2_gradient() {
  return short_function<RingRun<ShortGatV2Gradient<T, 64, by_rows>>,
                        differentiate_short_gatv2<T, by_rows>>();
}

}  // namespace tessera::ops
