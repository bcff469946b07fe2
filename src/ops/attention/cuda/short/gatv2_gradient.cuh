// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gatv2_masks.cuh"
#include "ops/attention/cuda/short/gatv2_scores.cuh"
#include "ops/attention/cuda/short/gradient_results.cuh"
#include "ops/attention/cuda/short/row_states.cuh"
#include "ops/attention/cuda/short/step_feed.cuh"
#include "ops/attention/cuda/short/weighted_tiles.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of GATv2 over windows of 16 rows, heads of up to 64 features: with dS of
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

template <class T, int width, bool by_rows>
class ShortGatV2Gradient : public ShortPass {
  static constexpr int num_matrices = by_rows ? 1 : 2;
  using Ring = StepRing<width>;
  using Masks = GatV2Masks<T, width>;
  using Own = OwnRows<width>;

  // Rows that scores are made of and, in another order, masks; rows that values are; dS of a step;
  // by rows O, by columns the states of the targets of two steps.
  static constexpr int own_at = Ring::bytes;
  static constexpr int values_at = own_at + Own::bytes;
  static constexpr int masks_at = values_at + Own::bytes;
  static constexpr int gradients_at = masks_at + Masks::own_bytes;
  static constexpr int last_at = gradients_at + Masks::step_bytes;
  static constexpr int last_bytes =
      by_rows ? Own::bytes : 2 * tiles::step_columns * static_cast<int>(sizeof(float2));

 public:
  static constexpr int blocks = 12;
  static constexpr int shared_bytes = last_at + last_bytes;

  __device__ ShortGatV2Gradient(const WindowsLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        scores_(launch),
        masks_(memory + masks_at, memory + gradients_at),
        own_scores_(memory + own_at, launch.target, launch.target_stride),
        own_values_(memory + values_at, launch.own_values, launch.own_values_stride),
        own_outputs_(memory + last_at, launch.own_output, launch.own_output_stride),
        states_(reinterpret_cast<float2*>(memory + last_at)) {}

  /// Pieces [begin, end), be they of one window or another.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin < end) run_some(begin, end);
    if (launch_.vector_sums == nullptr) return;
    masks_.store_vector_sums(launch_.vector_sums +
                             (std::int64_t{blockIdx.x} * launch_.heads + blockIdx.y) * width);
  }

 private:
  __device__ void run_some(std::int32_t begin, std::int32_t end) {
    Ring ring(launch_, begin, end, memory_);
    start_piece(launch_.pieces[begin]);
    Ring::settle();
    ask(ring);
    for (std::int32_t i = begin; i < end; ++i) {
      Ring::settle();
      begin_piece(launch_.pieces[i]);
#pragma unroll 1
      for (int left = launch_.pieces[i].num_steps; left > 0; --left) {
        Ring::settle();
        const std::uint32_t bits = ring.bits();
        const int turn = ring.turn();
        ask(ring);
        add(bits, ring.source_tile(turn), ring.value_tile(turn), turn);
      }
      __syncwarp();
      if (i + 1 < end) start_piece(launch_.pieces[i + 1]);
      finish(launch_.pieces[i]);
    }
  }

  __device__ void ask(Ring& ring) const {
    ring.ask([&](const VertexId* columns, int turn) {
      if constexpr (!by_rows) {
        const int lane = WarpLane::number();
        if (lane < tiles::step_columns) {
          cuda::copy_8_async(cuda::shared_address(states_ + turn * tiles::step_columns + lane),
                             row_state_at(launch_, columns[lane]));
        }
      }
    });
  }

  /// Asks for what belongs to the rows of a window.
  __device__ void start_piece(const tiles::Piece piece) {
    own_scores_.start(piece);
    own_values_.start(piece);
    if constexpr (by_rows) {
      own_outputs_.start(piece);
#pragma unroll
      for (int row = 0; row < 2; ++row) log_sums_[row] = own_log_sum(launch_, piece, row);
    }
  }
  __device__ void begin_piece(const tiles::Piece piece) {
    scores_.begin(own_scores_);
    masks_.clear();
    masks_.begin(
        [&](int row, int unit, int half) { return own_scores_.load_half(row, unit, half); });
    if constexpr (by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        float dot = 0;
#pragma unroll
        for (int chunk = 0; chunk < Own::chunks; ++chunk) {
          dot =
              add_unit_product<T>(own_values_.load(chunk, row), own_outputs_.load(chunk, row), dot);
        }
        row_states_[row] = make_row_state(launch_, piece, row, log_sums_[row], dot);
      }
    } else {
      totals_[0] = totals_[1] = 0;
      value_sums_ = {};
    }
  }

  __device__ void add(std::uint32_t bits, const StepTile<width>& sources,
                      const StepTile<width>& values, int turn) {
    StepCells scores, products;
    scores_.find(scores, sources);
#pragma unroll
    for (int chunk = 0; chunk < Own::chunks; ++chunk) {
      const int unit = chunk * 4 + WarpLane::quarter();
      const uint4 met[2] = {values.unit(WarpLane::group(), unit),
                            values.unit(WarpLane::group() + 8, unit)};
      products.add_products<T>(own_values_.load(chunk, 0), own_values_.load(chunk, 1), met);
    }
    weigh_cells(scores, products, 1, bits, [&](int i, int k) {
      return by_rows
                 ? row_states_[k / 2]
                 : states_[turn * tiles::step_columns + i * 8 + WarpLane::quarter() * 2 + k % 2];
    });
    masks_.put(scores);
    if constexpr (!by_rows) add_values(scores, products, values);
    masks_.add(Masks::turned(sources), used_rows(bits));
  }
  /// To the sums of dS and to dV.
  __device__ void add_values(const StepCells& gradients, const StepCells& cells,
                             const StepTile<width>& rows) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      totals_[row] += gradients.of[0][2 * row] + gradients.of[0][2 * row + 1] +
                      gradients.of[1][2 * row] + gradients.of[1][2 * row + 1];
    }
    add_weighted(value_sums_, operands_of<T>(cells), rows);
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
      for (int row = 0; row < 2; ++row) {
#pragma unroll
        for (int group = 0; group < width / 8; ++group) {
          const float* const pair = value_sums_.features[group] + 2 * row;
          results.store(1, WarpLane::group() + 8 * row, group * 8 + WarpLane::quarter() * 2,
                        pair[0], pair[1]);
        }
      }
    }
    const typename Results::Pairs pairs(results, 0, Masks::feature_of_lane());
    masks_.finish(
        1 - launch_.slope, static_cast<const T*>(launch_.vector) + std::int64_t{blockIdx.y} * width,
        [&](int row) { return by_rows ? 0.0f : __shfl_sync(~0u, sloped[row / 8], row % 8 * 4); },
        [&](int row, float low, float high) { pairs.store(row, low, high); });
    results.finish();
  }

  const WindowsLaunch& launch_;
  char* memory_;
  GatV2Scores<T, width> scores_;
  Masks masks_;
  Own own_scores_;
  Own own_values_;
  Own own_outputs_;                ///< by rows
  float2* states_;                 ///< by columns: of the targets of two steps
  float log_sums_[2];              ///< by rows: of the piece that was asked for last
  float2 row_states_[2];           ///< by rows, of rows g and g + 8
  HeadSums<T, width> value_sums_;  ///< by columns: dV
  float totals_[2];                ///< by columns: of dS, over this lane's columns
};

}  // namespace tessera::ops
