// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/tall/plane_rows.cuh"
#include "ops/attention/cuda/tall/steps.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"

/// Dot products of fp32 over windows of 64 rows: Q, K, V and weights are each a high and a low part
/// in bf16, and of their products the one of two low parts is left out. Each warp has 16 rows of a
/// window; the next tiles are under way while one is computed.
namespace tessera::ops {

template <int width>
class PlaneDots {
 public:
  using Part = __nv_bfloat16;
  static constexpr int heads = tall_block_heads(width);
  static constexpr int features = width * heads;
  using Planes = PlaneRows<float, features>;
  using Rows = typename Planes::Rows;
  static constexpr int num_stages = features > 32 ? 2 : 3;
  static constexpr int stage_bytes = 2 * Planes::bytes;
  static constexpr int shared_bytes = num_stages * stage_bytes;

  __device__ PlaneDots(const TallAttentionLaunch& launch, char* shared, std::int32_t begin,
                       std::int32_t end)
      : launch_(launch),
        shared_(shared),
        walk_(launch, begin, end),
        keys_(launch.source, launch.source_stride, first_feature(), launch.heads * width),
        values_(launch.value, launch.value_stride, first_feature(), launch.heads * width) {}

  /// Pieces [begin, end), be they of one window or another, without a seam.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    std::uint32_t words[num_stages - 1];
#pragma unroll
    for (int turn = 0; turn < num_stages - 1; ++turn) {
      const Tile tile = load_ids();
      words[turn] = tile.word;
      start(turn, tile);
    }
    Tile tile = load_ids();
    int turn = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      const tiles::Piece piece = launch_.pieces[i];
      begin_piece(piece);
      for (int steps = piece.num_steps; steps > 0; steps -= tile_steps, ++turn) {
        cuda::wait_for_copies<num_stages - 2>();
        Planes::cut(memory_of(turn, 0), steps * tiles::step_columns);
        Planes::cut(memory_of(turn, 1), steps * tiles::step_columns);
        __syncthreads();
        start(turn + num_stages - 1, tile);
        const TilePattern pattern{words[0]};
        if constexpr (num_stages == 3) words[0] = words[1];
        words[num_stages - 2] = tile.word;
        tile = load_ids();
        add(turn, pattern, steps < tile_steps ? steps : tile_steps);
      }
      finish_piece<float, features>(launch_, piece, sums_);
    }
    // Even what was asked for last must have arrived before the memory is another block's.
    cuda::wait_for_copies<0>();
  }

 private:
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int head_units = width / 8;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_head() { return static_cast<int>(blockIdx.y) * heads; }
  __device__ static int first_feature() { return static_cast<int>(blockIdx.y) * features; }

  /// Keys, then values.
  __device__ char* memory_of(int turn, int matrix) const {
    return shared_ + turn % num_stages * stage_bytes + matrix * Planes::bytes;
  }
  __device__ std::uint32_t rows_of(int turn, int matrix) const {
    return cuda::shared_address(memory_of(turn, matrix));
  }

  /// A tile on its way: its columns that this thread brings rows of, and this thread's bits.
  struct Tile {
    int num_columns;  ///< 0 after the last tile
    std::uint32_t word;
    VertexId rows[Planes::share];
  };
  __device__ Tile load_ids() {
    Tile tile{};
    if (!walk_.find()) return tile;
    tile.num_columns = walk_.num_columns();
    tile.word =
        __ldg(launch_.words + std::int64_t{walk_.tile} * tall_attention_threads + threadIdx.x);
    const VertexId* const columns =
        launch_.columns + std::int64_t{walk_.step} * tiles::step_columns;
#pragma unroll
    for (int i = 0; i < Planes::share; ++i) {
      const int row = Planes::row_of_thread(i);
      if (row < tile.num_columns) tile.rows[i] = __ldg(columns + row);
    }
    walk_.advance();
    return tile;
  }
  __device__ void start(int turn, const Tile& tile) const {
    keys_.start(rows_of(turn, 0), tile.rows, tile.num_columns);
    values_.start(rows_of(turn, 1), tile.rows, tile.num_columns);
    cuda::commit_copies();
  }

  /// Rows of Q as operands, times what makes scores powers of two.
  __device__ void begin_piece(const tiles::Piece& piece) {
    const float unit = launch_.scale * log2_of_e;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = static_cast<int>(threadIdx.x) / 32 * 16 + lane() / 4 + 8 * row;
      const float* const from = static_cast<const float*>(launch_.target) +
                                (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                                first_feature();
#pragma unroll
      for (int u = 0; u < Planes::units; ++u) {
        const int feature = u * 8 + lane() % 4 * 2;
        const bool exists =
            place < piece.num_rows && first_head() + feature / width < launch_.heads;
        float2 pair = {0, 0};
        if (exists) pair = __ldg(reinterpret_cast<const float2*>(from + feature));
        const PackedTwice<Part> parts(pair.x * unit, pair.y * unit);
        q_[u][0][row] = parts.high;
        q_[u][1][row] = parts.low;
      }
    }
#pragma unroll
    for (HeadSums<Part, width>& head : sums_) head = {};
  }

  /// One head's scores of two steps. What lies beyond the end of the tile is anything.
  __device__ void find_scores(PairScores& scores, std::uint32_t keys, int h, int step) const {
#pragma unroll
    for (auto& group : scores.cells) {
#pragma unroll
      for (float& score : group) score = 0;
    }
    if constexpr (width == 8) {
      // Both parts of Q meet the high part of K at once, as eight features are half an operand.
      const std::uint32_t both[4] = {q_[h][0][0], q_[h][0][1], q_[h][1][0], q_[h][1][1]};
      const std::uint32_t high[4] = {q_[h][0][0], q_[h][0][1], 0, 0};
      std::uint32_t blocks[4], low_blocks[4];
      Rows::load_rows_of_four(blocks, keys, 2 * step, Planes::unit_in(0, h));
      Rows::load_rows_of_four(low_blocks, keys, 2 * step, Planes::unit_in(1, h));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t b[2] = {blocks[i], blocks[i]};
        const std::uint32_t low_b[2] = {low_blocks[i], 0};
        cuda::multiply_16x8<Part>(scores.cells[i], high, low_b);
        cuda::multiply_16x8<Part>(scores.cells[i], both, b);
      }
    } else {
#pragma unroll
      for (int group = 0; group < 4; group += 2) {
#pragma unroll
        for (int k = 0; k < head_units; k += 2) {
          const int u = h * head_units + k;
          const std::uint32_t high[4] = {q_[u][0][0], q_[u][0][1], q_[u + 1][0][0],
                                         q_[u + 1][0][1]};
          const std::uint32_t low[4] = {q_[u][1][0], q_[u][1][1], q_[u + 1][1][0], q_[u + 1][1][1]};
          std::uint32_t blocks[4], low_blocks[4];
          Rows::load_rows(blocks, keys, 2 * step + group, Planes::unit_in(0, u));
          Rows::load_rows(low_blocks, keys, 2 * step + group, Planes::unit_in(1, u));
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
            const std::uint32_t low_b[2] = {low_blocks[2 * half], low_blocks[2 * half + 1]};
            cuda::multiply_16x8<Part>(scores.cells[group + half], high, low_b);
            cuda::multiply_16x8<Part>(scores.cells[group + half], low, b);
            cuda::multiply_16x8<Part>(scores.cells[group + half], high, b);
          }
        }
      }
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      // Rows of V that the tile does not have are no numbers to multiply by 0.
      const bool both = step + 1 < num_steps;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        PairScores scores;
        find_scores(scores, rows_of(turn, 0), h, step);
        scores.settle(cells, sums_[h]);
        multiply(h, scores.weights(0, sums_[h]), rows_of(turn, 1), step);
        if (both) multiply(h, scores.weights(1, sums_[h]), rows_of(turn, 1), step + 1);
      }
    }
  }
  __device__ void multiply(int h, const StepWeights<Part>& weights, std::uint32_t values,
                           int step) {
    HeadSums<Part, width>& head = sums_[h];
#pragma unroll
    for (int k = 0; k < head_units; k += 2) {
      const int u = h * head_units + k;
      std::uint32_t blocks[4], low_blocks[4];
      if constexpr (width == 8) {
        Rows::load_column(blocks, values, step, Planes::unit_in(0, u));
        Rows::load_column(low_blocks, values, step, Planes::unit_in(1, u));
      } else {
        Rows::load_columns(blocks, values, step, Planes::unit_in(0, u));
        Rows::load_columns(low_blocks, values, step, Planes::unit_in(1, u));
      }
#pragma unroll
      for (int half = 0; half < (width == 8 ? 1 : 2); ++half) {
        const std::uint32_t low_b[2] = {low_blocks[2 * half], low_blocks[2 * half + 1]};
        cuda::multiply_16x8<Part>(head.features[k + half], weights.high, low_b);
        head.multiply(k + half, weights, blocks[2 * half], blocks[2 * half + 1]);
      }
    }
  }

  const TallAttentionLaunch& launch_;
  char* shared_;
  TileWalk walk_;
  typename Planes::Copy keys_;
  typename Planes::Copy values_;
  std::uint32_t q_[Planes::units][2][2];  ///< per unit: high and low parts of the two rows
  HeadSums<Part, width> sums_[heads];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
constexpr int plane_dot_blocks(int width) { return width == 64 ? 2 : 3; }

template <int width>
__global__ __launch_bounds__(tall_attention_threads, plane_dot_blocks(width)) void attend_planes(
    const TallAttentionLaunch launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  PlaneDots<width> attention(launch, shared, begin, end);
  attention.run(begin, end);
}

template <int width>
constexpr TallAttentionFunction plane_dot_function() {
  constexpr int bytes = PlaneDots<width>::shared_bytes;
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            cuda::num_blocks(launch.heads, tall_block_heads(width)));
            cuda::launch_overlapped(attend_planes<width>, grid, tall_attention_threads,
                                    std::size_t{bytes}, stream, launch);
          },
          [] {
            return cuda::resident_blocks(attend_planes<width>, tall_attention_threads, bytes,
                                         bytes);
          }};
}

template <std::size_t... i>
constexpr PlaneDotFunctions make_plane_dots(std::index_sequence<i...>) {
  return {plane_dot_function<tall_head_widths[i]>()...};
}

}  // namespace tessera::ops
