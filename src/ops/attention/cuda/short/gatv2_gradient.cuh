// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gatv2_masks.cuh"
#include "ops/attention/cuda/short/gatv2_scores.cuh"
#include "ops/attention/cuda/short/gradient_results.cuh"
#include "ops/attention/cuda/short/row_states.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of GATv2 over windows of 16 rows, heads of 64 features: with dS of
/// row_states.cuh and z = x[i] + y[j]
///
///     dx[i] = a * sum over j of dS leaky_relu'(z),   dy[j] = a * sum over i of the same
///     da    = sum over all edges of dS leaky_relu(z)
///
/// leaky_relu' is s + (1 - s) [z > 0], so that dx and dy are made of sums of masks, to which s
/// times the sum of dS is added; over the sources of a target that is 0. As leaky_relu(z) is
/// leaky_relu' times x plus the same times y, da is what every target's sums times its x and every
/// source's times its y add up to. The sweep over windows of targets gives dx, that over windows of
/// sources dy and dV.
namespace tessera::ops {

template <class T, bool by_rows>
class ShortGatV2Gradient {
  static constexpr int width = GatV2Masks<T>::width;
  static constexpr int num_matrices = by_rows ? 1 : 2;
  using Scores = GatV2Scores<T, width, 1>;
  using Walk = StepWalk<ExchangedColumns>;
  using Masks = GatV2Masks<T>;
  using Own = OwnRows<width>;

  // Rows that scores are made of and, in another order, masks; rows that values are; by rows O, by
  // columns the states of targets.
  static constexpr int masks_at = Scores::shared_bytes;
  static constexpr int values_at = masks_at + Masks::own_bytes;
  static constexpr int last_at = values_at + Own::bytes;
  static constexpr int last_bytes = by_rows ? Own::bytes : 16 * static_cast<int>(sizeof(float2));
  static_assert(Masks::step_bytes <= Scores::scratch_bytes);

 public:
  static constexpr int shared_bytes = last_at + last_bytes;

  __device__ ShortGatV2Gradient(const TallAttentionLaunch& launch, char* memory)
      : launch_(launch),
        scores_(launch, memory),
        masks_(memory + masks_at, scores_.scratch()),
        own_values_(memory + values_at, launch.own_values, launch.own_values_stride),
        own_outputs_(memory + last_at, launch.own_output, launch.own_output_stride),
        states_(reinterpret_cast<float2*>(memory + last_at)),
        met_values_(launch.value, launch.value_stride),
        value_rows_(launch.value, launch.value_stride, width, WarpLane::group() * 8) {}

  /// Pieces [begin, end), be they of one window or another.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin < end) run_some(begin, end);
    if (launch_.vector_sums == nullptr) return;
    masks_.store_vector_sums(launch_.vector_sums +
                             (std::int64_t{blockIdx.x} * launch_.heads + blockIdx.y) * width);
  }

 private:
  __device__ void run_some(std::int32_t begin, std::int32_t end) {
    Walk walk(launch_, begin, end);
    Walk::Step step, next;
    if (walk.advance(step)) {
      scores_.load(step);
      load_values(step);
    }
    next = step;
    walk.advance(next);
    start_piece(launch_.pieces[begin]);
    for (std::int32_t i = begin; i < end; ++i) {
      begin_piece(launch_.pieces[i]);
#pragma unroll 1
      for (int left = launch_.pieces[i].num_steps; left > 0; --left) {
        add(step, next);
        step = next;
        walk.advance(next);
      }
      __syncwarp();
      if (i + 1 < end) start_piece(launch_.pieces[i + 1]);
      finish(launch_.pieces[i]);
    }
    // The states that the last step asked for belong to no step, but must have come.
    cuda::wait_for_copies<0>();
  }

  /// What belongs to the columns of a step, beside the rows that scores are made of.
  __device__ void load_values(const Walk::Step& step) {
    met_values_.load(step);
    if constexpr (!by_rows) {
      const int lane = WarpLane::number();
      if (lane < 16) {
        cuda::copy_8_async(cuda::shared_address(states_ + lane),
                           row_state_at(launch_, step.column));
      }
      cuda::commit_copies();
    }
  }

  /// Asks for what belongs to the rows of a window.
  __device__ void start_piece(const tiles::Piece piece) {
    scores_.start_own(piece, 0);
    own_values_.start(piece, 0);
    if constexpr (by_rows) {
      own_outputs_.start(piece, 0);
#pragma unroll
      for (int row = 0; row < 2; ++row) log_sums_[row] = own_log_sum(launch_, piece, row);
    }
    cuda::commit_copies();
  }
  __device__ void begin_piece(const tiles::Piece piece) {
    cuda::wait_for_copies<0>();
    scores_.begin(0);
    masks_.clear();
    masks_.begin([&](int row, int unit) { return scores_.own(row, unit, 0); });
    if constexpr (by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        float dot = 0;
#pragma unroll
        for (int chunk = 0; chunk < Own::chunks; ++chunk) {
          dot = add_unit_product<T>(own_values_.load(chunk, row, 0),
                                    own_outputs_.load(chunk, row, 0), dot);
        }
        row_states_[row] = make_row_state(launch_, piece, row, log_sums_[row], dot);
      }
    } else {
      totals_[0] = totals_[1] = 0;
      value_sums_.clear();
    }
  }

  /// One step; of the next what scores are made of is on its way during the sums of masks, the rest
  /// when other warps compute.
  __device__ void add(const Walk::Step& step, const Walk::Step& next) {
    const std::uint32_t rows = used_rows(step.bits);
    StepCells scores, products;
    met_values_.multiply(own_values_, 0, products);
    scores_.find(scores, rows, 0);
    if constexpr (!by_rows) {
      cuda::wait_for_copies<0>();
      __syncwarp();
    }
    weigh_cells(scores, products, 1, step.bits, [&](int i, int k) {
      return by_rows ? row_states_[k / 2] : states_[i * 8 + WarpLane::quarter() * 2 + k % 2];
    });
    masks_.put(scores);
    if constexpr (!by_rows) add_values(scores, products, step);
    const typename Masks::Columns columns = Masks::turned(scores_.columns());
    scores_.load(next);
    masks_.add(columns, rows);
    load_values(next);
  }
  /// To the sums of dS and to dV.
  __device__ void add_values(const StepCells& gradients, const StepCells& weights,
                             const StepColumns& columns) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      totals_[row] += gradients.of[0][2 * row] + gradients.of[0][2 * row + 1] +
                      gradients.of[1][2 * row] + gradients.of[1][2 * row + 1];
    }
    WeightedRows values;
    values.load(value_rows_, columns, 0);
    value_sums_.add(StepOperands<T>(weights), 0, values.held);
  }

  __device__ void finish(const tiles::Piece piece) {
    using Results = ShortGradientResults<T, width, num_matrices>;
    typename Results::Matrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, 1.0f};
    if constexpr (!by_rows) matrices[1] = {launch_.output, launch_.output_stride, 1.0f};
    const Results results(launch_, piece, matrices);
    float sloped[2] = {0, 0};
    if constexpr (!by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        float total = totals_[row] + __shfl_xor_sync(~0u, totals_[row], 1);
        total += __shfl_xor_sync(~0u, total, 2);
        sloped[row] = launch_.slope * total;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float features[8];
        value_sums_.row(0, i / 2, i % 2, features);
        results.store(1, 8 * (i / 2) + 2 * WarpLane::quarter() + i % 2, WarpLane::group() * 8,
                      features);
      }
    }
    const typename Results::Pairs pairs(results, 0, Masks::feature_of_lane());
    masks_.finish(
        1 - launch_.slope, static_cast<const T*>(launch_.vector) + std::int64_t{blockIdx.y} * width,
        [&](int row) { return by_rows ? 0.0f : __shfl_sync(~0u, sloped[row / 8], row % 8 * 4); },
        [&](int row, float low, float high) { pairs.store(row, low, high); });
    results.finish();
  }

  const TallAttentionLaunch& launch_;
  Scores scores_;
  Masks masks_;
  Own own_values_;
  Own own_outputs_;  ///< by rows
  float2* states_;   ///< by columns: of the 16 targets of a step
  MetRows<T, width> met_values_;
  FeatureRows value_rows_;
  float log_sums_[2];                 ///< by rows: of the piece that was asked for last
  float2 row_states_[2];              ///< by rows, of rows g and g + 8
  FeatureSums<T, width> value_sums_;  ///< by columns: dV
  float totals_[2];                   ///< by columns: of dS, over this lane's columns
};

/// Warps that an SM should hold, as registers allow.
template <bool by_rows>
inline constexpr int short_gatv2_gradient_blocks = 12;

template <class T, bool by_rows>
__global__
__launch_bounds__(32, (short_gatv2_gradient_blocks<by_rows>)) void differentiate_short_gatv2(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGatV2Gradient<T, by_rows>>(launch);
}

template <class T, bool by_rows>
constexpr TallAttentionFunction make_short_gatv2_gradient() {
  return short_function<ShortGatV2Gradient<T, by_rows>, differentiate_short_gatv2<T, by_rows>>();
}

}  // namespace tessera::ops
