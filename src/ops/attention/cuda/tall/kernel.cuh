// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/tall/dot.cuh"
#include "ops/attention/cuda/tall/gat.cuh"
#include "ops/attention/cuda/tall/steps.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"

/// Attention over tall windows on tensor cores: the rows that the 64 rows of a window use are
/// gathered once, 64 at a time, into shared memory. Each warp computes the weights of 16 rows of
/// the window as the operand of a product with the gathered rows of V. Tiles k + 1 and k + 2 are
/// under way while tile k is computed, be they of this window or the next.
namespace tessera::ops {

template <AttentionForm form, class T, int width, int heads>
struct TallForm;
template <class T, int width, int heads>
struct TallForm<AttentionForm::gat, T, width, heads> {
  using Type = GatTiles<T, width, heads>;
};
template <class T, int width, int heads>
struct TallForm<AttentionForm::dot, T, width, heads> {
  using Type = DotTiles<T, width, heads>;
};

template <AttentionForm form_name, class T, int width>
class TallAttention {
 public:
  static constexpr int heads = tall_block_heads(width);
  static constexpr int features = width * heads;
  using Form = typename TallForm<form_name, T, width, heads>::Type;
  using Rows = TileRows<features>;
  static constexpr bool gathers_scores = form_name == AttentionForm::dot;
  static constexpr int num_stages = 3;
  static constexpr int stage_bytes = Rows::bytes + Form::stage_bytes;
  static constexpr int shared_bytes = num_stages * stage_bytes;

  __device__ TallAttention(const TallAttentionLaunch& launch, char* shared)
      : launch_(launch),
        shared_(shared),
        rows_(cuda::shared_address(shared)),
        first_head_(static_cast<int>(blockIdx.y) * heads),
        values_(launch.value, launch.value_stride, std::int64_t{first_head_} * width,
                launch.heads * width),
        keys_(launch.source, launch.source_stride, std::int64_t{first_head_} * width,
              launch.heads * width),
        form_(launch, first_head_) {}

  /// Pieces [begin, end), be they of one window or another, without a seam.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    TileWalk walk(launch_, begin, end);
    TileIds ids = load_ids(walk);
    std::uint32_t word = ids.word;
    start(0, ids);
    put_scores(0, fetch_scores(ids));
    ids = load_ids(walk);
    std::uint32_t next_word = ids.word;
    start(1, ids);
    auto scores_ahead = fetch_scores(ids);
    ids = load_ids(walk);
    int turn = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      piece_ = launch_.pieces[i];
      form_.begin_window(piece_);
      if (i + 1 < end) form_.expect(launch_.pieces[i + 1]);
#pragma unroll
      for (HeadSums<T, width>& head : sums_) head = {};
      for (int steps = piece_.num_steps; steps > 0; steps -= tile_steps, ++turn) {
        cuda::wait_for_copies<num_stages - 2>();
        __syncthreads();
        put_scores(turn + 1, scores_ahead);
        start(turn + 2, ids);
        scores_ahead = fetch_scores(ids);
        const TilePattern pattern{word};
        word = next_word;
        next_word = ids.word;
        ids = load_ids(walk);
        add(turn, pattern, steps < tile_steps ? steps : tile_steps);
      }
      finish_piece<T, features>(launch_, piece_, sums_);
    }
    // Even what was asked for last must have arrived before the memory is another block's.
    cuda::wait_for_copies<0>();
  }

 private:
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;

  __device__ std::uint32_t stage_of(int turn) const {
    return static_cast<std::uint32_t>(turn % num_stages * stage_bytes);
  }
  __device__ typename Form::Stage& scores_of(int turn) const {
    return *reinterpret_cast<typename Form::Stage*>(shared_ + stage_of(turn) + Rows::bytes);
  }

  /// A tile on its way: its columns that this thread brings rows of, those that it brings terms of,
  /// and this thread's bits.
  struct TileIds {
    int num_columns;  ///< 0 after the last tile
    std::uint32_t word;
    VertexId rows[Rows::share];
    VertexId scores[2];
  };
  __device__ TileIds load_ids(TileWalk& walk) const {
    TileIds ids{};
    if (!walk.find()) return ids;
    ids.num_columns = walk.num_columns();
    ids.word =
        __ldg(launch_.words + std::int64_t{walk.tile} * tall_attention_threads + threadIdx.x);
    const VertexId* const columns = launch_.columns + std::int64_t{walk.step} * tiles::step_columns;
    Rows::load_ids(ids.rows, columns, ids.num_columns);
    if constexpr (!gathers_scores) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int column = static_cast<int>(threadIdx.x % 32) + 32 * part;
        if (column < ids.num_columns) ids.scores[part] = __ldg(columns + column);
      }
    }
    walk.advance();
    return ids;
  }

  /// Asks for the rows of a tile, if there is one.
  __device__ void start(int turn, const TileIds& ids) const {
    const std::uint32_t to = rows_ + stage_of(turn);
    values_.start(to, ids.rows, ids.num_columns);
    if constexpr (gathers_scores) keys_.start(to + Rows::bytes, ids.rows, ids.num_columns);
    cuda::commit_copies();
  }

  /// What scores need beside rows comes through registers, a tile ahead.
  __device__ auto fetch_scores(const TileIds& ids) const {
    if constexpr (gathers_scores) {
      return 0;
    } else {
      return form_.fetch(ids.scores, ids.num_columns);
    }
  }
  template <class Fetched>
  __device__ void put_scores(int turn, const Fetched& fetched) const {
    if constexpr (!gathers_scores) {
      if (fetched.num_columns > 0) form_.put(scores_of(turn), fetched);
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if constexpr (gathers_scores) {
      add_by_products(turn, pattern, num_steps);
    } else {
      bool has_edges[2];
      pattern.find_rows(has_edges);
      if (form_.begin_tile(scores_of(turn), has_edges, sums_)) {
        add_by_factors(turn, pattern, num_steps);
      } else {
        add_exponentials<Rows>(sums_, form_, scores_of(turn), rows_ + stage_of(turn), pattern,
                               num_steps);
      }
    }
  }

  __device__ void add_by_factors(int turn, const TilePattern& pattern, int num_steps) {
    const typename Form::Stage& stage = scores_of(turn);
    typename Form::RowFactors rows[heads];
#pragma unroll
    for (int h = 0; h < heads; ++h) rows[h] = form_.row_factors(stage, h, sums_[h]);
    add_steps<Rows>(sums_, rows_ + stage_of(turn), pattern, num_steps,
                    [&](int h, int step, const StepPattern& cells) {
                      return Form::weights(stage, h, rows[h], step, cells, sums_[h]);
                    });
  }

  /// Scores that are products themselves, of two steps at a time.
  __device__ void add_by_products(int turn, const TilePattern& pattern, int num_steps) {
    const std::uint32_t values = rows_ + stage_of(turn);
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      // Rows of V that the tile does not have are no numbers to multiply by 0.
      const bool both = step + 1 < num_steps;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        HeadSums<T, width>& head = sums_[h];
        PairScores scores;
        form_.scores(values + Rows::bytes, h, step, scores);
        scores.settle(cells, head);
        if constexpr (width == 8) {
          std::uint32_t blocks[4];
          Rows::load_column_of_two(blocks, values, step, h);
          head.multiply(0, scores.weights(0, head), blocks[0], blocks[1]);
          if (both) head.multiply(0, scores.weights(1, head), blocks[2], blocks[3]);
        } else {
          constexpr int units = width / 8;
          head.template add_wide<Rows>(scores.weights(0, head), values, step, h * units);
          if (both) {
            head.template add_wide<Rows>(scores.weights(1, head), values, step + 1, h * units);
          }
        }
      }
    }
  }

  const TallAttentionLaunch& launch_;
  char* shared_;
  std::uint32_t rows_;
  int first_head_;
  typename Rows::Copy values_;
  typename Rows::Copy keys_;
  Form form_;
  tiles::Piece piece_;
  HeadSums<T, width> sums_[heads];
};

/// Blocks that an SM should hold, as their registers allow.
constexpr int tall_attention_blocks(int width) { return width == 128 ? 3 : 4; }

template <AttentionForm form, class T, int width>
__global__ __launch_bounds__(
    tall_attention_threads,
    tall_attention_blocks(width)) void attend_windows(const TallAttentionLaunch launch) {
  extern __shared__ __align__(tile_alignment) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  TallAttention<form, T, width> attention(launch, shared);
  attention.run(begin, end);
}

template <AttentionForm form, class T, int width>
constexpr TallAttentionFunction make_tall_function() {
  using Attention = TallAttention<form, T, width>;
  constexpr auto kernel = attend_windows<form, T, width>;
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            cuda::num_blocks(launch.heads, Attention::heads));
            cuda::launch_overlapped(kernel, grid, tall_attention_threads,
                                    std::size_t{Attention::shared_bytes}, stream, launch);
          },
          [] {
            return cuda::resident_blocks(kernel, tall_attention_threads, Attention::shared_bytes,
                                         Attention::shared_bytes);
          }};
}

template <AttentionForm form, class T>
constexpr TallAttentionFunctions make_tall_attention() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return TallAttentionFunctions{make_tall_function<form, T, tall_head_widths[i]>()...};
  }
  (std::make_index_sequence<tall_head_widths.size()>{});
}

}  // namespace tessera::ops
