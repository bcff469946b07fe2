// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/attention/cuda/tall/plane_rows.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// The backward pass of dot products over windows of 64 rows, of bf16 or, in two parts,
/// fp32. With P the weights, which come
/// again from the scores and `log_sum`, and D = dO . O of a target,
///
///     dS = P (dO . V - D),   dQ = scale dS K,   dK = scale dS^T Q,   dV = P^T dO
///
/// One sweep over windows of targets gives dQ, and leaves log_sum and D for the other, over windows
/// of sources, which gives dK and dV. The two rows of each vertex of a window lie in shared memory;
/// of the vertices it is joined to, two rows each are gathered. Both products of a cell are matrix
/// products, and so is what it adds to the gradients, its weight in two parts.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class DotGradient {
 public:
  static constexpr int heads = tall_block_heads(width);
  static constexpr int features = width * heads;
  using Planes = PlaneRows<T, features>;
  using Rows = typename Planes::Rows;
  using Part = typename Planes::Part;
  static constexpr int num_matrices = by_rows ? 1 : 2;
  static constexpr int num_stages = features * Planes::planes > 64 ? 2 : 3;
  /// Of targets, where they are the columns of a tile: log_sum in powers of two, and D.
  struct ColumnStates {
    float2 of[heads][tiles::tile_columns];
  };
  static constexpr int stage_bytes =
      2 * Rows::bytes + (by_rows ? 0 : static_cast<int>(sizeof(ColumnStates)));
  static constexpr int own_bytes = 2 * Rows::bytes;
  static constexpr int shared_bytes = num_stages * stage_bytes + own_bytes;

  __device__ DotGradient(const TallAttentionLaunch& launch, char* shared)
      : launch_(launch),
        shared_(shared),
        memory_(cuda::shared_address(shared)),
        partners_{Copy(launch.source, launch.source_stride, first_feature(), all_features()),
                  Copy(launch.value, launch.value_stride, first_feature(), all_features())},
        unit_(launch.scale * log2_of_e) {}

  /// Pieces [begin, end), be they of one window or another, without a seam.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    TileWalk walk(launch_, begin, end);
    std::uint32_t words[num_stages - 1];
#pragma unroll
    for (int turn = 0; turn < num_stages - 1; ++turn) {
      const Tile tile = load_ids(walk);
      words[turn] = tile.word;
      start(turn, tile);
    }
    Tile tile = load_ids(walk);
    int turn = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      const tiles::Piece piece = launch_.pieces[i];
      begin_piece(piece);
      for (int steps = piece.num_steps; steps > 0; steps -= tile_steps, ++turn) {
        cuda::wait_for_copies<num_stages - 2>();
        cut(turn, steps * tiles::step_columns);
        __syncthreads();
        start(turn + num_stages - 1, tile);
        const TilePattern pattern{words[0]};
        if constexpr (num_stages == 3) words[0] = words[1];
        words[num_stages - 2] = tile.word;
        tile = load_ids(walk);
        add(turn, pattern, steps < tile_steps ? steps : tile_steps);
      }
      finish(piece);
    }
    if constexpr (by_rows) store_scale_sum();
    // Even what was asked for last must have arrived before the memory is another block's.
    cuda::wait_for_copies<0>();
  }

 private:
  using Copy = typename Planes::Copy;
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int units = width / 8;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / 32 * 16; }
  __device__ static int first_head() { return static_cast<int>(blockIdx.y) * heads; }
  __device__ static int first_feature() { return static_cast<int>(blockIdx.y) * features; }
  __device__ int all_features() const { return static_cast<int>(launch_.heads) * width; }

  /// The rows that scores are of, K or Q, then the others, V or dO; those of the window itself.
  __device__ std::uint32_t rows_of(int turn, int matrix) const {
    return memory_ +
           static_cast<std::uint32_t>(turn % num_stages * stage_bytes + matrix * Rows::bytes);
  }
  __device__ static constexpr int own_offset(int matrix) {
    return num_stages * stage_bytes + matrix * Rows::bytes;
  }
  __device__ ColumnStates& states_of(int turn) const {
    return *reinterpret_cast<ColumnStates*>(shared_ + turn % num_stages * stage_bytes +
                                            2 * Rows::bytes);
  }

  /// A tile on its way: its columns that this thread brings rows of, and this thread's bits.
  struct Tile {
    int num_columns;  ///< 0 after the last tile
    std::uint32_t word;
    VertexId rows[Planes::share];
    VertexId of_state;
  };
  __device__ Tile load_ids(TileWalk& walk) const {
    Tile tile{};
    if (!walk.find()) return tile;
    tile.num_columns = walk.num_columns();
    tile.word =
        __ldg(launch_.words + std::int64_t{walk.tile} * tall_attention_threads + threadIdx.x);
    const VertexId* const columns = launch_.columns + std::int64_t{walk.step} * tiles::step_columns;
#pragma unroll
    for (int i = 0; i < Planes::share; ++i) {
      const int row = Planes::row_of_thread(i);
      if (row < tile.num_columns) tile.rows[i] = __ldg(columns + row);
    }
    if constexpr (!by_rows) {
      const int column = static_cast<int>(threadIdx.x) % tiles::tile_columns;
      if (column < tile.num_columns) tile.of_state = __ldg(columns + column);
    }
    walk.advance();
    return tile;
  }
  __device__ void start(int turn, const Tile& tile) const {
    partners_[0].start(rows_of(turn, 0), tile.rows, tile.num_columns);
    partners_[1].start(rows_of(turn, 1), tile.rows, tile.num_columns);
    if constexpr (!by_rows) {
      const int column = static_cast<int>(threadIdx.x) % tiles::tile_columns;
      constexpr int at_once = tall_attention_threads / tiles::tile_columns;
#pragma unroll
      for (int h = static_cast<int>(threadIdx.x) / tiles::tile_columns; h < heads; h += at_once) {
        const int head = first_head() + h;
        if (column >= tile.num_columns || head >= launch_.heads) continue;
        cuda::copy_8_async(cuda::shared_address(&states_of(turn).of[h][column]),
                           launch_.row_state + std::int64_t{tile.of_state} * launch_.heads + head);
      }
    }
    cuda::commit_copies();
  }

  __device__ void cut(int turn, int num_columns) const {
    char* const stage = shared_ + turn % num_stages * stage_bytes;
    Planes::cut(stage, num_columns);
    Planes::cut(stage + Rows::bytes, num_columns);
  }

  /// Each warp brings its own 16 rows, and by rows what belongs to them.
  __device__ void begin_piece(const tiles::Piece& piece) {
    __syncwarp();
    bring_own(0, piece, launch_.target, launch_.target_stride);
    bring_own(1, piece, launch_.own_values, launch_.own_values_stride);
    __syncwarp();
#pragma unroll
    for (auto& of_matrix : sums_) {
#pragma unroll
      for (HeadSums<Part, width>& head : of_matrix) head = {};
    }
    if constexpr (by_rows) find_states(piece);
  }
  __device__ void bring_own(int matrix, const tiles::Piece& piece, const void* from,
                            std::int64_t stride) const {
#pragma unroll
    for (int i = lane(); i < 16 * Planes::units; i += 32) {
      const int place = first_row() + i / Planes::units;
      const int unit = i % Planes::units;
      const int feature = first_feature() + unit * 8;
      char* const to = shared_ + own_offset(matrix);
      if (place < piece.num_rows && feature < all_features()) {
        const T* const row =
            static_cast<const T*>(from) + (std::int64_t{piece.first_row} + place) * stride;
        Planes::put(to, place, unit, row + feature);
      } else {
        Planes::clear(to, place, unit);
      }
    }
  }
  /// The two features of this lane in a unit of eight.
  __device__ float2 pair_at(const void* matrix, std::int64_t stride, std::int64_t row,
                            int unit) const {
    const T* const from =
        static_cast<const T*>(matrix) + row * stride + first_feature() + unit * 8 + lane() % 4 * 2;
    return {cuda::widen(__ldg(from)), cuda::widen(__ldg(from + 1))};
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
        for (int unit = h * units; unit < (h + 1) * units; ++unit) {
          const float2 gradient = pair_at(launch_.own_values, launch_.own_values_stride, row, unit);
          const float2 output = pair_at(launch_.own_output, launch_.own_output_stride, row, unit);
          dot = fmaf(gradient.x, output.x, fmaf(gradient.y, output.y, dot));
        }
        state.x =
            __ldg(launch_.log_sum + row * launch_.log_sum_stride + first_head() + h) * log2_of_e;
      }
      dot += __shfl_xor_sync(~0u, dot, 1);
      dot += __shfl_xor_sync(~0u, dot, 2);
      state.y = dot;
      if (exists && lane() % 4 == 0) {
        launch_.row_state[row * launch_.heads + first_head() + h] = state;
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
    const std::uint32_t own = memory_ + static_cast<std::uint32_t>(own_offset(matrix));
    const std::uint32_t rows = rows_of(turn, matrix);
    // The product of two low parts is left out.
#pragma unroll
    for (int own_plane = Planes::planes - 1; own_plane >= 0; --own_plane) {
#pragma unroll
      for (int plane = Planes::planes - 1 - own_plane; plane >= 0; --plane) {
        add_products(cells, own, own_plane, rows, plane, h, step);
      }
    }
  }
  __device__ static void add_products(float (&cells)[4][4], std::uint32_t own, int own_plane,
                                      std::uint32_t rows, int plane, int h, int step) {
    const int row = first_row() + lane() % 16;
    if constexpr (width == 8) {
      std::uint32_t a[4];
      cuda::load_blocks(a, own + Rows::offset(row, Planes::unit_in(own_plane, h)));
      a[2] = a[3] = 0;
      std::uint32_t blocks[4];
      Rows::load_rows_of_four(blocks, rows, 2 * step, Planes::unit_in(plane, h));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t b[2] = {blocks[i], 0};
        cuda::multiply_16x8<Part>(cells[i], a, b);
      }
    } else {
#pragma unroll
      for (int k = 0; k < units; k += 2) {
        const int unit = h * units + k;
        std::uint32_t a[4];
        cuda::load_blocks(a,
                          own + Rows::offset(row, Planes::unit_in(own_plane, unit + lane() / 16)));
#pragma unroll
        for (int group = 0; group < 4; group += 2) {
          std::uint32_t blocks[4];
          Rows::load_rows(blocks, rows, 2 * step + group, Planes::unit_in(plane, unit));
          const std::uint32_t first[2] = {blocks[0], blocks[1]};
          const std::uint32_t second[2] = {blocks[2], blocks[3]};
          cuda::multiply_16x8<Part>(cells[group], a, first);
          cuda::multiply_16x8<Part>(cells[group + 1], a, second);
        }
      }
    }
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

  /// One step of one head: its cells become weights and gradients of scores, then products.
  __device__ void add_step(int turn, int h, int step, const StepPattern& pattern,
                           const float (*scores)[4], const float (*value_products)[4]) {
    StepWeights<Part> weights, gradients;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      float pair[2], gradient[2];
      float2 states[2] = {states_[h][place % 2], states_[h][place % 2]};
      if constexpr (!by_rows) {
        const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
        const float4 both = *reinterpret_cast<const float4*>(&states_of(turn).of[h][column]);
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
      gradients.set(place, gradient[0], gradient[1]);
      if constexpr (!by_rows) weights.set(place, pair[0], pair[1]);
    }
    multiply(sums_[0][h], gradients, rows_of(turn, 0), h, step);
    if constexpr (!by_rows) multiply(sums_[1][h], weights, rows_of(turn, 1), h, step);
  }
  __device__ static void multiply(HeadSums<Part, width>& sums, const StepWeights<Part>& weights,
                                  std::uint32_t rows, int h, int step) {
#pragma unroll
    for (int plane = Planes::planes - 1; plane >= 0; --plane) {
#pragma unroll
      for (int k = 0; k < units; k += 2) {
        std::uint32_t blocks[4];
        const int unit = Planes::unit_in(plane, h * units + k);
        if constexpr (width == 8) {
          Rows::load_column(blocks, rows, step, unit);
        } else {
          Rows::load_columns(blocks, rows, step, unit);
        }
#pragma unroll
        for (int half = 0; half < (width == 8 ? 1 : 2); ++half) {
          const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
          if (plane == 0) cuda::multiply_16x8<Part>(sums.features[k + half], weights.low, b);
          cuda::multiply_16x8<Part>(sums.features[k + half], weights.high, b);
        }
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    if constexpr (by_rows) {
      if (launch_.scale_sums != nullptr) add_to_scale(piece);
    }
    using Results = GradientResults<T, features, num_matrices>;
    typename Results::Matrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, launch_.scale};
    if constexpr (!by_rows) matrices[1] = {launch_.output, launch_.output_stride, 1.0f};
    const Results results(launch_, all_features(), matrices);
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) {
#pragma unroll
      for (int i = 0; i < 2 * heads * units; ++i) {
        const int unit = i / 2;
        const int row = i % 2;
        const auto& sums = sums_[m][unit / units].features[unit % units];
        results.store(piece, m, first_row() + lane() / 4 + 8 * row, unit * 8 + lane() % 4 * 2,
                      sums[2 * row], sums[2 * row + 1]);
      }
    }
    results.finish(piece);
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
    if (launch_.scale_sums == nullptr) return;
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) {
      scale_sum_ += __shfl_xor_sync(~0u, scale_sum_, distance);
    }
    const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
    if (lane() == 0) launch_.scale_sums[block * 4 + first_row() / 16] = scale_sum_;
  }

  const TallAttentionLaunch& launch_;
  char* shared_;
  std::uint32_t memory_;
  Copy partners_[2];
  float unit_;
  double scale_sum_ = 0;
  float2 states_[heads][2];  ///< by rows: of the two rows of this lane
  HeadSums<Part, width> sums_[num_matrices][heads];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
template <class T, int width, bool by_rows>
inline constexpr int dot_gradient_blocks = width == 128 ||
                                                   (width == 64 && (!by_rows || sizeof(T) == 4))
                                               ? 2
                                               : 3;

template <class T, int width, bool by_rows>
__global__ __launch_bounds__(
    tall_attention_threads,
    (dot_gradient_blocks<T, width, by_rows>)) void differentiate_dots(const TallAttentionLaunch
                                                                          launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  DotGradient<T, width, by_rows> gradient(launch, shared);
  gradient.run(begin, end);
}

template <class T, int width, bool by_rows>
constexpr TallAttentionFunction dot_gradient_function() {
  constexpr int bytes = DotGradient<T, width, by_rows>::shared_bytes;
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            cuda::num_blocks(launch.heads, tall_block_heads(width)));
            cuda::launch_overlapped(differentiate_dots<T, width, by_rows>, grid,
                                    tall_attention_threads, std::size_t{bytes}, stream, launch);
          },
          [] {
            return cuda::resident_blocks(differentiate_dots<T, width, by_rows>,
                                         tall_attention_threads, bytes, bytes);
          }};
}

/// Of the first `count` of `tall_head_widths`.
template <class T, bool by_rows, std::size_t count>
constexpr std::array<TallAttentionFunction, count> make_dot_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<TallAttentionFunction, count>{
        dot_gradient_function<T, tall_head_widths[i], by_rows>()...};
  }
  (std::make_index_sequence<count>{});
}

}  // namespace tessera::ops
