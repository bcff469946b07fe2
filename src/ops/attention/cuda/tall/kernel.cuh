// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/tall/dot.cuh"
#include "ops/attention/cuda/tall/gat.cuh"

/// Attention over tall windows on tensor cores: the rows that the 64 rows of a window use are
/// gathered once, 64 at a time, into shared memory. Each warp computes the weights of 16 rows of
/// the window as the operand of a product with the gathered rows of V. Tiles k + 1 and k + 2 are
/// under way while tile k is computed.
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

  __device__ void run(const tiles::Piece& piece) {
    piece_ = piece;
    num_tiles_ = (piece.num_steps + 3) / 4;
    form_.begin_window(piece);
#pragma unroll
    for (HeadSums<T, width>& head : sums_) head = {};
    TileIds ids = load_ids(0);
    start(0, ids);
    put_scores(0, fetch_scores(0, ids));
    ids = load_ids(1);
    start(1, ids);
    auto scores_ahead = fetch_scores(1, ids);
    ids = load_ids(2);
    const std::uint32_t* words =
        launch_.words + std::int64_t{piece.first_tile} * tall_attention_threads + threadIdx.x;
    TilePattern next{num_tiles_ > 0 ? __ldg(words) : 0u};
    for (int tile = 0; tile < num_tiles_; ++tile) {
      cuda::wait_for_copies<num_stages - 2>();
      __syncthreads();
      put_scores(tile + 1, scores_ahead);
      start(tile + 2, ids);
      scores_ahead = fetch_scores(tile + 2, ids);
      ids = load_ids(tile + 3);
      const TilePattern pattern = next;
      if (tile + 1 < num_tiles_) {
        next.word = __ldg(words + (tile + 1) * tall_attention_threads);
      }
      add(tile, pattern);
    }
    cuda::wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (HeadSums<T, width>& head : sums_) {
      const float totals[2] = {head.total(0), head.total(1)};
      head.sum[0] = totals[0];
      head.sum[1] = totals[1];
    }
    finish();
  }

 private:
  __device__ int columns_of(int tile) const {
    const int left = (piece_.num_steps - tile * 4) * tiles::step_columns;
    return left < tiles::tile_columns ? left : tiles::tile_columns;
  }
  __device__ const VertexId* column_ids(int tile) const {
    return launch_.columns + (std::int64_t{piece_.first_step} + tile * 4) * tiles::step_columns;
  }
  __device__ std::uint32_t stage_of(int tile) const {
    return static_cast<std::uint32_t>(tile % num_stages * stage_bytes);
  }
  __device__ typename Form::Stage& scores_of(int tile) const {
    return *reinterpret_cast<typename Form::Stage*>(shared_ + stage_of(tile) + Rows::bytes);
  }

  /// The columns of a tile that this thread brings rows of, and those that it brings terms of.
  struct TileIds {
    VertexId rows[Rows::share];
    VertexId scores[2];
  };
  __device__ TileIds load_ids(int tile) const {
    TileIds ids{};
    if (tile >= num_tiles_) return ids;
    const int num_columns = columns_of(tile);
    const VertexId* const columns = column_ids(tile);
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) {
      const int row = Rows::row_of_thread(i);
      if (row < num_columns) ids.rows[i] = __ldg(columns + row);
    }
    if constexpr (!gathers_scores) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int column = static_cast<int>(threadIdx.x) % 32 + 32 * part;
        if (column < num_columns) ids.scores[part] = __ldg(columns + column);
      }
    }
    return ids;
  }

  /// Asks for the rows of a tile, if there is one.
  __device__ void start(int tile, const TileIds& ids) const {
    if (tile < num_tiles_) {
      const std::uint32_t to = rows_ + stage_of(tile);
      values_.start(to, ids.rows, columns_of(tile));
      if constexpr (gathers_scores) keys_.start(to + Rows::bytes, ids.rows, columns_of(tile));
    }
    cuda::commit_copies();
  }

  /// What scores need beside rows comes through registers, a tile ahead.
  __device__ auto fetch_scores(int tile, const TileIds& ids) const {
    if constexpr (gathers_scores) {
      return 0;
    } else {
      if (tile >= num_tiles_) return typename Form::Fetched{};
      return form_.fetch(ids.scores, columns_of(tile));
    }
  }
  template <class Fetched>
  __device__ void put_scores(int tile, const Fetched& fetched) const {
    if constexpr (!gathers_scores) {
      if (tile < num_tiles_) form_.put(scores_of(tile), fetched, columns_of(tile));
    }
  }

  __device__ void add(int tile, const TilePattern& pattern) {
    const int num_steps = columns_of(tile) / tiles::step_columns;
    if constexpr (!gathers_scores) {
      bool has_edges[2];
      pattern.find_rows(has_edges);
      if (form_.begin_tile(scores_of(tile), has_edges, sums_)) {
        if (num_steps == 4) {
          add_by_factors(tile, pattern, AllSteps{});
        } else {
          add_by_factors(tile, pattern, SomeSteps{num_steps});
        }
        return;
      }
    } else if (num_steps == 4) {
      add_by_scores(tile, pattern, AllSteps{});
      return;
    }
    add_by_scores(tile, pattern, SomeSteps{num_steps});
  }

  template <class Steps>
  __device__ void add_by_factors(int tile, const TilePattern& pattern, const Steps& steps) {
    const typename Form::Stage& stage = scores_of(tile);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      HeadSums<T, width>& head = sums_[h];
      const auto rows = form_.row_factors(stage, h, head);
      head.template add<features>(steps, rows_ + stage_of(tile), h * (width / 8), [&](int step) {
        return Form::weights(stage, h, rows, step, pattern, head);
      });
    }
  }

  template <class Steps>
  __device__ void add_by_scores(int tile, const TilePattern& pattern, const Steps& steps) {
    const std::uint32_t values = rows_ + stage_of(tile);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      HeadSums<T, width>& head = sums_[h];
      TileScores scores;
      form_.scores(scores_of(tile), values + Rows::bytes, h, steps, scores);
      scores.settle(pattern, head);
      head.template add<features>(steps, values, h * (width / 8),
                                  [&](int step) { return scores.weights(step, head); });
    }
  }

  __device__ void finish() {
    if (piece_.slot >= 0) {
      store_slot();
      const tiles::CutWindow window = launch_.slot_windows[piece_.slot];
      if (is_last(window)) join_slots(window);
      return;
    }
    each_row([&](int place, int row) {
      if (place >= piece_.num_rows) return;
      const std::int64_t vertex = std::int64_t{piece_.first_row} + place;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        if (first_head_ + h >= launch_.heads) break;
        const HeadSums<T, width>& head = sums_[h];
        const float reciprocal = reciprocal_of(vertex, head.sum[row]);
        T* const to = static_cast<T*>(launch_.output) + vertex * launch_.output_stride +
                      std::int64_t{first_head_ + h} * width + threadIdx.x % 4 * 2;
#pragma unroll
        for (int group = 0; group < width / 8; ++group) {
          *reinterpret_cast<std::uint32_t*>(to + group * 8) =
              packed<T>(head.features[group][2 * row] * reciprocal,
                        head.features[group][2 * row + 1] * reciprocal);
        }
        if (threadIdx.x % 4 == 0) {
          store_log_sum(vertex, first_head_ + h, head.base[row], head.sum[row]);
        }
      }
    });
  }

  /// Calls body(place in the window, 0 or 1) for the two rows of this lane.
  template <class Body>
  __device__ static void each_row(Body&& body) {
    const int first =
        static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
    body(first, 0);
    body(first + 8, 1);
  }

  /// A row without edges is 0; one of nothing but scores of -inf divides 0 by 0.
  __device__ float reciprocal_of(std::int64_t vertex, float sum) const {
    return sum == 0 && is_empty(vertex) ? 0.0f : 1 / sum;
  }
  __device__ bool is_empty(std::int64_t vertex) const {
    const cuda::Offsets& offsets = launch_.offsets;
    return offsets.narrow != nullptr
               ? __ldg(offsets.narrow + vertex) == __ldg(offsets.narrow + vertex + 1)
               : __ldg(offsets.wide + vertex) == __ldg(offsets.wide + vertex + 1);
  }
  __device__ void store_log_sum(std::int64_t vertex, int head, float base, float sum) const {
    if (launch_.log_sum == nullptr) return;
    launch_.log_sum[vertex * launch_.log_sum_stride + head] =
        sum == 0 ? -cuda::infinity : (base + log2f(sum)) * ln_of_2;
  }

  __device__ float* slot_row(int slot, int place) const {
    return launch_.slots + (std::int64_t{slot} * tall_attention_height + place) * launch_.slot_row;
  }
  __device__ void store_slot() const {
    each_row([&](int place, int row) {
      float* const to = slot_row(piece_.slot, place);
      const std::int64_t all_features = launch_.heads * width;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        const int head = first_head_ + h;
        if (head >= launch_.heads) break;
#pragma unroll
        for (int group = 0; group < width / 8; ++group) {
          float* const at = to + std::int64_t{head} * width + group * 8 + threadIdx.x % 4 * 2;
          at[0] = sums_[h].features[group][2 * row];
          at[1] = sums_[h].features[group][2 * row + 1];
        }
        if (threadIdx.x % 4 == 0) {
          to[all_features + head] = sums_[h].base[row];
          to[all_features + launch_.heads + head] = sums_[h].sum[row];
        }
      }
    });
  }

  /// True in all threads of the block that stores the last piece of a window.
  __device__ bool is_last(const tiles::CutWindow& window) const {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned* const counter =
          launch_.arrivals + std::int64_t{blockIdx.y} * launch_.num_slots + window.first_slot;
      last = atomicAdd(counter, 1u) + 1 == static_cast<unsigned>(window.num_slots);
      if (last) *counter = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
  }

  /// In the order of the pieces. First what the features of every piece are multiplied by takes the
  /// place of its base, then the features are added up.
  __device__ void join_slots(const tiles::CutWindow& window) const {
    const int left = static_cast<int>(launch_.heads) - first_head_;
    const int num_heads = left < heads ? left : heads;
    const std::int64_t all_features = launch_.heads * width;
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * num_heads;
         i += tall_attention_threads) {
      const int place = i / num_heads;
      const int head = first_head_ + i % num_heads;
      join_bases(window, place, head, all_features + head);
    }
    __threadfence_block();
    __syncthreads();
    constexpr int chunk = 8;  // features of a thread
    const int of_row = num_heads * width / chunk;
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * of_row;
         i += tall_attention_threads) {
      const int place = i / of_row;
      const int feature = first_head_ * width + i % of_row * chunk;
      const int head = feature / width;
      float totals[chunk] = {};
#pragma unroll 2
      for (int k = 0; k < window.num_slots; ++k) {
        const float* const slot = slot_row(window.first_slot + k, place);
        const float factor = __ldcg(slot + all_features + head);
        float values[chunk];
#pragma unroll
        for (int j = 0; j < chunk; ++j) values[j] = __ldcg(slot + feature + j);
#pragma unroll
        for (int j = 0; j < chunk; ++j) totals[j] = fmaf(values[j], factor, totals[j]);
      }
      T* const to = static_cast<T*>(launch_.output) +
                    (std::int64_t{window.first_row} + place) * launch_.output_stride + feature;
#pragma unroll
      for (int j = 0; j < chunk; ++j) to[j] = cuda::narrow<T>(totals[j]);
    }
  }

  __device__ void join_bases(const tiles::CutWindow& window, int place, int head,
                             std::int64_t base_at) const {
    const std::int64_t vertex = std::int64_t{window.first_row} + place;
    float base = lowest_base;
    for (int k = 0; k < window.num_slots; ++k) {
      base = fmaxf(base, __ldcg(slot_row(window.first_slot + k, place) + base_at));
    }
    float sum = 0;
    for (int k = 0; k < window.num_slots; ++k) {
      const float* const slot = slot_row(window.first_slot + k, place) + base_at;
      sum = fmaf(__ldcg(slot + launch_.heads), power_of_2(__ldcg(slot) - base), sum);
    }
    const float reciprocal = reciprocal_of(vertex, sum);
    for (int k = 0; k < window.num_slots; ++k) {
      float* const slot = slot_row(window.first_slot + k, place) + base_at;
      __stcg(slot, power_of_2(__ldcg(slot) - base) * reciprocal);
    }
    store_log_sum(vertex, head, base, sum);
  }

  const TallAttentionLaunch& launch_;
  char* shared_;
  std::uint32_t rows_;
  int first_head_;
  typename Rows::Copy values_;
  typename Rows::Copy keys_;
  Form form_;
  tiles::Piece piece_;
  int num_tiles_ = 0;
  HeadSums<T, width> sums_[heads];
};

/// Blocks that an SM should hold.
template <AttentionForm form, int width>
inline constexpr int tall_attention_blocks = (form == AttentionForm::gat ? 4 : 3) -
                                             (width == 128 ? 1 : 0);

template <AttentionForm form, class T, int width>
__global__ __launch_bounds__(
    tall_attention_threads,
    (tall_attention_blocks<form, width>)) void attend_windows(const TallAttentionLaunch launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  TallAttention<form, T, width> attention(launch, shared);
  for (std::int32_t i = begin; i < end; ++i) attention.run(launch.pieces[i]);
}

template <AttentionForm form, class T, int width>
void launch_attend_windows(const TallAttentionLaunch& launch, Stream stream) {
  using Attention = TallAttention<form, T, width>;
  const dim3 grid(static_cast<unsigned>(launch.num_workers),
                  cuda::num_blocks(launch.heads, Attention::heads));
  cuda::launch_overlapped(attend_windows<form, T, width>, grid, tall_attention_threads,
                          std::size_t{Attention::shared_bytes}, stream, launch);
}

template <AttentionForm form, class T, int width>
int resident_attend_windows() {
  constexpr int bytes = TallAttention<form, T, width>::shared_bytes;
  return cuda::resident_blocks(attend_windows<form, T, width>, tall_attention_threads, bytes,
                               bytes);
}

template <AttentionForm form, class T>
constexpr TallAttentionFunctions make_tall_attention() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return TallAttentionFunctions{
        TallAttentionFunction{launch_attend_windows<form, T, tall_head_widths[i]>,
                              resident_attend_windows<form, T, tall_head_widths[i]>}...};
  }
  (std::make_index_sequence<tall_head_widths.size()>{});
}

}  // namespace tessera::ops
