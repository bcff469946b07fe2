// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/windows/tile_products.cuh"

/// The backward pass of dot products over windows of 64 rows, of bf16 or, in two parts, fp32. With
/// P the weights, which come again from the scores and `log_sum`, and D = dO . O of a target,
///
///     dS = P (dO . V - D),   dQ = scale dS K,   dK = scale dS^T Q,   dV = P^T dO
///
/// One sweep over windows of targets gives dQ, and leaves log_sum and D for the other, over windows
/// of sources, which gives dK and dV. The two rows of each vertex of a window lie in shared memory;
/// of the vertices it is joined to, two rows each are gathered. Both products of a cell are matrix
/// products, and so is what it adds to the gradients, its weight in two parts.
namespace tessera::ops {

/// Of targets, where they are the columns of a tile: log_sum in powers of two, and D.
template <int width, bool by_rows>
using DotColumns =
    std::conditional_t<by_rows, NoColumns, StateColumns<float2, tall_block_heads(width)>>;

template <class T, int width, bool by_rows>
class DotGradient : public GatheredWindows<DotGradient<T, width, by_rows>, T, width, 2, 2,
                                           DotColumns<width, by_rows>> {
  using Windows = GatheredWindows<DotGradient, T, width, 2, 2, DotColumns<width, by_rows>>;

 public:
  static constexpr int blocks = width == 64 ? 2 : 3;
  using Windows::heads;

  __device__ DotGradient(const WindowsLaunch& launch, char* shared)
      : Windows(launch, shared), unit_(launch.scale * log2_of_e) {}

  /// Each warp brings its own 16 rows, and by rows what belongs to them.
  __device__ void begin_piece(const tiles::Piece& piece) {
    __syncwarp();
    bring_own(0, piece, launch_.target, launch_.target_stride);
    bring_own(1, piece, launch_.own_values, launch_.own_values_stride);
#pragma unroll
    for (auto& of_matrix : sums_) {
#pragma unroll
      for (HeadSums<Part, width>& head : of_matrix) head = {};
    }
    if constexpr (by_rows) find_states(piece);
    this->wait_for_own();
  }

  __device__ void expect(const WindowRows& rows) const {
    this->expect_rows(launch_.target, launch_.target_stride, rows);
    this->template expect_gradients<by_rows>(rows);
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      // Rows that the tile does not have are no numbers to multiply by 0.
      const int count = step + 1 < num_steps ? 2 : 1;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        float scores[4][4], value_products[4][4];
        products(scores, 0, turn, h, step);
        products(value_products, 1, turn, h, step);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          if (k >= count) break;
          add_step(turn, h, step + k, cells[k], scores + 2 * k, value_products + 2 * k);
        }
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr) add_to_scale(piece);
    }
    const BlockColumns columns(first_feature(), features, all_features());
    GradientMatrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, launch_.scale, columns};
    if constexpr (!by_rows) {
      matrices[1] = {launch_.output, launch_.output_stride, 1.0f, columns, all_features()};
    }
    const GradientResults<T, num_matrices> results(launch_, matrices);
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) {
#pragma unroll
      for (int row = 0; row < 2; ++row) store_row(results, piece, m, row);
    }
    results.finish(piece);
  }

  /// After the last piece.
  __device__ void end() {
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr) store_scale_sum();
    }
  }

 private:
  using typename Windows::Part;
  using Products = TileProducts<T, width>;
  using Windows::all_features, Windows::bring_own, Windows::columns_of, Windows::features,
      Windows::first_feature, Windows::first_head, Windows::first_row, Windows::lane,
      Windows::launch_, Windows::own_memory, Windows::rows_of, Windows::units;
  static constexpr int num_matrices = by_rows ? 1 : 2;

  template <class Results>
  __device__ void store_row(const Results& results, const tiles::Piece& piece, int m,
                            int row) const {
    const int place = first_row() + lane() / 4 + 8 * row;
    if constexpr (sizeof(T) == 2 && heads == 1) {
      results.store_row(piece, m, place, sums_[m][0].features, row);
    } else {
#pragma unroll
      for (int unit = 0; unit < heads * units; ++unit) {
        const float* const pair = sums_[m][unit / units].features[unit % units] + 2 * row;
        results.row(piece, m, place).store(unit * 8 + lane() % 4 * 2, pair[0], pair[1]);
      }
    }
  }

  /// The two features of this lane in a unit of eight.
  __device__ float2 pair_at(const void* matrix, std::int64_t stride, std::int64_t row,
                            int unit) const {
    const T* const from =
        static_cast<const T*>(matrix) + row * stride + first_feature() + unit * 8 + lane() % 4 * 2;
    float pair[2];
    cuda::Vector<T, 2 * static_cast<int>(sizeof(T))>::load(from).widen_to(pair);
    return {pair[0], pair[1]};
  }
  /// 16 bytes of a head's features.
  static constexpr int vector_size = 16 / static_cast<int>(sizeof(T));
  __device__ void load_vector(float (&values)[vector_size], const void* matrix, std::int64_t stride,
                              std::int64_t row, int h, int feature) const {
    const T* const from =
        static_cast<const T*>(matrix) + row * stride + first_feature() + h * width + feature;
    cuda::Vector<T, 16>::load(from).widen_to(values);
  }
  __device__ void find_states(const tiles::Piece& piece) {
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const int h = i / 2;
      const int place = first_row() + lane() / 4 + 8 * (i % 2);
      const bool exists = place < piece.num_rows && first_head() + h < launch_.heads;
      const std::int64_t row = std::int64_t{piece.first_row} + place;
      float2 state = {0, 0};
      float dot = 0;
      if (exists) {
#pragma unroll
        for (int from = 0; from < width; from += 4 * vector_size) {
          const int first = from + lane() % 4 * vector_size;
          if (first >= width) break;
          float gradients[vector_size], outputs[vector_size];
          load_vector(gradients, launch_.own_values, launch_.own_values_stride, row, h, first);
          load_vector(outputs, launch_.own_output, launch_.own_output_stride, row, h, first);
#pragma unroll
          for (int k = 0; k < vector_size; ++k) dot = fmaf(gradients[k], outputs[k], dot);
        }
        state.x =
            __ldg(launch_.log_sum + row * launch_.log_sum_stride + first_head() + h) * log2_of_e;
      }
      state.y = over_lanes(dot);
      if (exists && lane() % 4 == 0) {
        static_cast<float2*>(launch_.row_state)[row * launch_.heads + first_head() + h] = state;
      }
      states_[h][i % 2] = state;
    }
  }

  /// Products of own rows with those of two steps of a tile.
  __device__ void products(float (&cells)[4][4], int matrix, int turn, int h, int step) const {
#pragma unroll
    for (auto& group : cells) {
#pragma unroll
      for (float& cell : group) cell = 0;
    }
    Products::add_dots(cells, cuda::shared_address(own_memory(matrix)), first_row(),
                       rows_of(turn, matrix), h, step);
  }

  /// One step of one head.
  __device__ void add_step(int turn, int h, int step, const StepPattern& pattern,
                           const float (*scores)[4], const float (*value_products)[4]) {
    StepWeights<Part> of_step[num_matrices];
    find_step(of_step, turn, h, step, pattern, scores, value_products);
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) {
      Products::add_rows(sums_[m][h], of_step[m], rows_of(turn, m), h, step);
    }
  }
  /// Its cells become gradients of scores and, by columns, weights.
  __device__ void find_step(StepWeights<Part> (&of_step)[num_matrices], int turn, int h, int step,
                            const StepPattern& pattern, const float (*scores)[4],
                            const float (*value_products)[4]) const {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      float pair[2], gradient[2];
      float2 states[2] = {states_[h][place % 2], states_[h][place % 2]};
      if constexpr (!by_rows) {
        const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
        const float4 both = *reinterpret_cast<const float4*>(&columns_of(turn).of[h][column]);
        states[0] = {both.x, both.y};
        states[1] = {both.z, both.w};
      }
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int at = place % 2 * 2 + odd;
        const float weight = power_of_2(fmaf(scores[place / 2][at], unit_, -states[odd].x));
        const bool exists = pattern.has(place, odd);
        pair[odd] = exists ? weight : 0.0f;
        gradient[odd] = exists ? weight * (value_products[place / 2][at] - states[odd].y) : 0.0f;
      }
      of_step[0].set(place, gradient[0], gradient[1]);
      if constexpr (!by_rows) of_step[1].set(place, pair[0], pair[1]);
    }
  }

  /// The gradient of the scale is the sum of Q times dQ / scale.
  __device__ void add_to_scale(const tiles::Piece& piece) {
#pragma unroll
    for (int i = 0; i < 2 * heads * units; ++i) {
      const int unit = i / 2;
      const int row = i % 2;
      const float* const sums = sums_[0][unit / units].features[unit % units] + 2 * row;
      const int place = first_row() + lane() / 4 + 8 * row;
      // A row without edges adds nothing, whatever it is.
      if (place >= piece.num_rows || first_feature() + unit * 8 >= all_features() ||
          (sums[0] == 0 && sums[1] == 0)) {
        continue;
      }
      const float2 own = pair_at(launch_.target, launch_.target_stride,
                                 std::int64_t{piece.first_row} + place, unit);
      scale_sum_ += static_cast<double>(own.x * sums[0] + own.y * sums[1]);
    }
  }

  __device__ void store_scale_sum() {
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) {
      scale_sum_ += __shfl_xor_sync(~0u, scale_sum_, distance);
    }
    const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
    if (lane() == 0) launch_.scale_sums[block * 4 + first_row() / 16] = scale_sum_;
  }

  float unit_;
  double scale_sum_ = 0;
  float2 states_[heads][2];  ///< by rows: of the two rows of this lane
  HeadSums<Part, width> sums_[num_matrices][heads];
};

}  // namespace tessera::ops
