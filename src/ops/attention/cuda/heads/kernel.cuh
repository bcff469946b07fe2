// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/heads/sums.cuh"
#include "ops/attention/cuda/tall/results.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"

/// GAT over windows of 64 rows on tensor cores (factors.cuh says by which products). While a tile
/// of 64 columns is multiplied, the rows of V of the next one are on their way, and the ids of the
/// one after it. What a thread brings it also scales. Two warps share the features of a block, each
/// for 32 rows twice over.
namespace tessera::ops {

template <class T, int width>
class HeadAttention {
 public:
  static constexpr int block_features = head_block_features(width);
  using Tile = ScaledTile<T, width, block_features>;
  using Unit = typename Tile::Unit;
  static constexpr int heads = Tile::heads;
  static constexpr int warp_units = Tile::units / 2;
  static constexpr int warp_heads = width < warp_units * 8 ? warp_units * 8 / width : 1;
  /// Units that a thread brings of a tile.
  static constexpr int share = tiles::tile_columns * Tile::units / tall_attention_threads;

  struct Shared {
    Tile tiles[2];
    Unit arriving[share][tall_attention_threads];
    /// Of rows, where cells take exponentials. Registers are dear, and these are seldom needed.
    float bases[tall_attention_threads / 32][warp_heads][32];
  };

  __device__ HeadAttention(const TallAttentionLaunch& launch, Shared& shared)
      : launch_(launch),
        shared_(shared),
        first_feature_(static_cast<int>(blockIdx.y) * block_features),
        row_bytes_(static_cast<std::uint32_t>(launch.value_stride * sizeof(T))) {
    const int feature = first_feature_ + unit_of_thread() * 8;
    brings_ = feature < static_cast<int>(launch.heads) * width;
    values_ = static_cast<const char*>(launch.value) + std::int64_t{feature} * sizeof(T);
    // Of a head that there is, in any case.
    const int head = brings_ ? feature / width : 0;
    terms_ = static_cast<const T*>(launch.source) + head;
    asm volatile("" : "+l"(values_), "+l"(terms_));
  }

  /// Pieces [begin, end), without a seam.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    TileWalk walk(launch_, begin, end);
    Place next = place_of(walk), after = place_of(walk);
    Arriving arriving;
    load_ids(arriving, next);
    start(arriving, next);
    load_ids(arriving, after);
    std::uint32_t words[2];
    load_words(words, next);
    int turn = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      piece_ = launch_.pieces[i];
      begin_piece();
      for (int steps = piece_.num_steps; steps > 0; steps -= tile_steps, ++turn) {
        const Place here = next;
        bool fails = put(turn, arriving, here);
        next = after;
        after = place_of(walk);
        start(arriving, next);
        load_ids(arriving, after);
        const std::uint32_t bits[2] = {words[0], words[1]};
        load_words(words, next);
        fails = __syncthreads_or(fails ? 1 : 0) != 0;
        const int num_steps = steps < tile_steps ? steps : tile_steps;
        if (!fails && !failing_) {
          add(turn, bits, num_steps);
          continue;
        }
        if (!failing_) turn_to_exponentials(turn, here);
        add_unscaled(turn, bits, num_steps);
      }
      finish(turn - 1);
    }
    cuda::wait_for_copies<0>();
  }

 private:
  /// Bases follow scores that lie so far above them, in powers of two.
  static constexpr float base_slack = 8;
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int head_units = warp_units / warp_heads;
  using Sums = SignedSums<head_units>;

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  /// Of this warp: the first of its rows in the window, of its units and of its heads in the block.
  __device__ static int first_row() { return warp() / 2 * 32; }
  __device__ static int first_unit() { return warp() % 2 * warp_units; }
  __device__ static int first_head() { return first_unit() * 8 / width; }

  __device__ static int unit_of_thread() { return static_cast<int>(threadIdx.x) % Tile::units; }
  __device__ static int column_of_thread(int i) {
    return static_cast<int>(threadIdx.x) / Tile::units + i * (tall_attention_threads / Tile::units);
  }

  __device__ Tile& tile_of(int turn) const { return shared_.tiles[turn % 2]; }
  __device__ float& base_of(int h, int block, int row) const {
    return shared_.bases[warp()][h][block * 16 + row * 8 + lane() / 4];
  }

  struct Place {
    std::int32_t step;
    std::int32_t tile;
    int num_columns;  ///< 0 after the last tile
    bool begins;      ///< a piece
  };
  __device__ static Place place_of(TileWalk& walk) {
    if (!walk.find()) return {};
    const Place place{walk.step, walk.tile, walk.num_columns(), walk.begins};
    walk.advance();
    return place;
  }

  /// What a thread awaits of tiles: ids, then terms of columns; features go to shared memory.
  struct Arriving {
    VertexId ids[share];
    VertexId first_id;  ///< of the first column of the tile, whose term is c of a piece
    float r[share];
    float c;
  };
  __device__ VertexId id_at(const Place& place, int column) const {
    return __ldg(launch_.columns + std::int64_t{place.step} * tiles::step_columns + column);
  }
  __device__ void load_ids(Arriving& arriving, const Place& place) const {
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int column = column_of_thread(i);
      if (column < place.num_columns) arriving.ids[i] = id_at(place, column);
    }
    if (place.num_columns > 0) arriving.first_id = id_at(place, 0);
  }
  /// Asks for what the ids lead to.
  __device__ void start(Arriving& arriving, const Place& place) const {
#pragma unroll
    for (int i = 0; i < share; ++i) {
      if (column_of_thread(i) >= place.num_columns) continue;
      const char* const from = features_of(arriving.ids[i]);
      const std::uint32_t to = cuda::shared_address(&shared_.arriving[i][threadIdx.x]);
#pragma unroll
      for (int k = 0; k < Unit::count; ++k) {
        if (brings_) {
          cuda::copy_16_async(to + 16 * k, from + 16 * k);
        } else {
          cuda::zero_16_async(to + 16 * k, launch_.value);
        }
      }
      arriving.r[i] = term_of(arriving.ids[i]);
    }
    cuda::commit_copies();
    if (place.begins) arriving.c = term_of(arriving.first_id);
  }
  __device__ const char* features_of(VertexId vertex) const {
    return values_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(vertex)) * row_bytes_;
  }
  __device__ float term_of(VertexId vertex) const {
    return cuda::widen(__ldg(terms_ + vertex * launch_.source_stride)) * log2_of_e;
  }
  __device__ void load_words(std::uint32_t (&words)[2], const Place& place) const {
    words[0] = words[1] = 0;
    if (place.num_columns == 0) return;
    const std::uint32_t* const from = launch_.words +
                                      std::int64_t{place.tile} * tall_attention_threads +
                                      first_row() * 2 + lane();
    words[0] = __ldg(from);
    words[1] = __ldg(from + 32);
  }

  /// Scales what this thread has brought; returns whether factors fail to serve for it.
  __device__ bool put(int turn, const Arriving& arriving, const Place& place) {
    cuda::wait_for_copies<0>();
    Tile& tile = tile_of(turn);
    const int unit = unit_of_thread();
    const int head = unit * 8 / width;
    const bool speaks = unit * 8 % width == 0;  // for the head
    bool fails = !(launch_.slope >= 0 && launch_.slope <= 1);
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int column = column_of_thread(i);
      if (column >= place.num_columns) continue;
      const Unit& from = shared_.arriving[i][threadIdx.x];
      if (failing_) {
        tile.put_unscaled(column, unit, from);
      } else {
        fails = fails || !ColumnFactors::serve(arriving.r[i], arriving.c);
        const ColumnFactors factors(arriving.r[i], arriving.c, launch_.slope);
        tile.put_scaled(column, unit, from, factors);
        if (speaks) tile.parts[head][column] = factors.parts();
      }
      if (speaks) tile.r[head][column] = arriving.r[i];
    }
    if (speaks && column_of_thread(0) == 0) tile.c[head] = arriving.c;
    return fails;
  }

  __device__ void begin_piece() {
    failing_ = false;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = first_row() + i * 8 + lane() / 4;
#pragma unroll
      for (int h = 0; h < warp_heads; ++h) {
        const int head = first_feature_ / width + first_head() + h;
        const bool wanted = place < piece_.num_rows && head < launch_.heads;
        const T* const from = static_cast<const T*>(launch_.target) +
                              (std::int64_t{piece_.first_row} + place) * launch_.target_stride;
        l_[h][i / 2][i % 2] = wanted ? cuda::widen(__ldg(from + head)) * log2_of_e : 0.0f;
      }
    }
#pragma unroll
    for (auto& of_head : sums_) {
#pragma unroll
      for (Sums& sums : of_head) sums.clear();
    }
  }

  /// Where factors serve no longer: for the whole block and the rest of the piece.
  __device__ void turn_to_exponentials(int turn, const Place& place) {
    failing_ = true;
    Tile& tile = tile_of(turn);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        base_of(h, i / 2, i % 2) = fold(h, i / 2, i % 2, tile.c[first_head() + h]);
      }
    }
#pragma unroll 1
    for (int i = 0; i < share; ++i) {
      const int column = column_of_thread(i);
      if (column >= place.num_columns) continue;
      Unit unit{};
      const char* const from = features_of(id_at(place, column));
#pragma unroll
      for (int k = 0; k < Unit::count; ++k) {
        if (brings_) unit.vectors[k] = __ldg(reinterpret_cast<const uint4*>(from) + k);
      }
      tile.put_unscaled(column, unit_of_thread(), unit);
    }
    __syncthreads();
  }
  /// The sums of a head and row in units of 2^base of the row, which it returns.
  __device__ float fold(int h, int block, int row, float c) {
    const float raw = l_[h][block][row] + c;
    float base = leaky_power(raw, launch_.slope);
    float own = power_of_2(raw - base) / SignCells::unit;
    float sloped = power_of_2(launch_.slope * raw - base) / SignCells::unit;
    // Without an edge so far, whatever the terms are.
    if (!sums_[h][block].has_edges(row)) {
      base = lowest_base;
      own = sloped = 0;
    }
    sums_[h][block].fold(row, own, sloped);
    return base;
  }

  __device__ void add(int turn, const std::uint32_t (&bits)[2], int num_steps) {
    const Tile& tile = tile_of(turn);
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      const std::uint32_t of_step[2] = {bits[0] >> (4 * step), bits[1] >> (4 * step)};
      const bool used[2] = {__any_sync(~0u, (of_step[0] & 0x000f000fu) != 0) != 0,
                            __any_sync(~0u, (of_step[1] & 0x000f000fu) != 0) != 0};
      if (!used[0] && !used[1]) continue;
#pragma unroll
      for (int h = 0; h < warp_heads; ++h) {
        const int head = first_head() + h;
        const float2* const terms =
            reinterpret_cast<const float2*>(&tile.r[head][step * 16 + lane() % 4 * 2]);
        const float2 r[2] = {terms[0], terms[4]};
        const SignCells cells[2] = {SignCells(of_step[0], l_[h][0], r),
                                    SignCells(of_step[1], l_[h][1], r)};
        std::uint32_t parts[4];
        tile.load_parts(parts, step, head);
        if (used[0]) sums_[h][0].add_weights(cells[0], parts[0], parts[1]);
        if (used[1]) sums_[h][1].add_weights(cells[1], parts[0], parts[1]);
#pragma unroll
        for (int group = 0; group < head_units; ++group) {
          std::uint32_t own[4], sloped[4];
          const int unit = first_unit() + h * head_units + group;
          tile.load_rows(own, step, unit, 0);
          tile.load_rows(sloped, step, unit, 1);
          if (used[0]) sums_[h][0].add(group, cells[0], own, sloped);
          if (used[1]) sums_[h][1].add(group, cells[1], own, sloped);
        }
      }
    }
  }

  /// Every cell by its own exponential, relative to the largest score of its row so far.
  __device__ void add_unscaled(int turn, const std::uint32_t (&bits)[2], int num_steps) {
    const Tile& tile = tile_of(turn);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const TilePattern pattern{bits[block]};
        raise_bases(h, block, tile, pattern, num_steps);
        const float bases[2] = {base_of(h, block, 0), base_of(h, block, 1)};
#pragma unroll 1
        for (int step = 0; step < num_steps; ++step) {
          const StepPattern cells(pattern, step);
          if (!cells.has_edges()) continue;
          StepWeights<__nv_bfloat16> weights;
          each_score(h, block, tile, step, [&](int place, float even, float odd) {
            const float base = bases[place % 2];
            weights.set(place, cells.masked(power_of_2(even - base), place, 0),
                        cells.masked(power_of_2(odd - base), place, 1));
          });
          Sums& sums = sums_[h][block];
          sums.add_unscaled_weights(weights);
#pragma unroll
          for (int group = 0; group < head_units; ++group) {
            std::uint32_t own[4];
            tile.load_rows(own, step, first_unit() + h * head_units + group, 0);
            sums.add_unscaled(group, weights, own);
          }
        }
      }
    }
  }
  __device__ void raise_bases(int h, int block, const Tile& tile, const TilePattern& pattern,
                              int num_steps) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      const StepPattern cells(pattern, step);
      each_score(h, block, tile, step, [&](int place, float even, float odd) {
        float& of_row = top[place % 2];
        of_row = fmaxf(of_row, cells.has(place, 0) ? even : -cuda::infinity);
        of_row = fmaxf(of_row, cells.has(place, 1) ? odd : -cuda::infinity);
      });
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 1));
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 2));
      const float base = base_of(h, block, row);
      __syncwarp();
      if (!(top[row] > base + base_slack)) continue;
      sums_[h][block].scale_row(row, power_of_2(base - top[row]));
      base_of(h, block, row) = top[row];
    }
    __syncwarp();
  }
  /// Calls body(place, score of the even column, score of the odd one).
  template <class Body>
  __device__ void each_score(int h, int block, const Tile& tile, int step, Body&& body) const {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      const float2 r = *reinterpret_cast<const float2*>(&tile.r[first_head() + h][column]);
      const float l = l_[h][block][place % 2];
      body(place, leaky_power(l + r.x, launch_.slope), leaky_power(l + r.y, launch_.slope));
    }
  }

  __device__ void finish(int turn) {
    const WindowResults<T, width, block_features> results(launch_);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
      const int head = first_head() + h;
#pragma unroll
      for (int block = 0; block < 2; ++block) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const float base =
              failing_ ? base_of(h, block, row)
                       : fold(h, block, row, piece_.num_steps > 0 ? tile_of(turn).c[head] : 0.0f);
          const Sums& sums = sums_[h][block];
          float pairs[head_units][2];
#pragma unroll
          for (int group = 0; group < head_units; ++group) {
            pairs[group][0] = sums.plus[group][2 * row];
            pairs[group][1] = sums.plus[group][2 * row + 1];
          }
          results.store(piece_, first_row() + block * 16 + row * 8 + lane() / 4,
                        first_unit() * 8 + h * width, pairs, base, sums.total(row));
        }
      }
    }
    results.finish(piece_);
  }

  const TallAttentionLaunch& launch_;
  Shared& shared_;
  int first_feature_;
  std::uint32_t row_bytes_;
  bool brings_;
  bool failing_ = false;
  const char* values_;
  const T* terms_;
  tiles::Piece piece_;
  float l_[warp_heads][2][2];
  Sums sums_[warp_heads][2];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
constexpr int head_attention_blocks(int width) { return width < 64 ? 3 : 2; }

template <class T, int width>
__global__ __launch_bounds__(
    tall_attention_threads,
    head_attention_blocks(width)) void attend_heads(const TallAttentionLaunch launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  using Attention = HeadAttention<T, width>;
  Attention attention(launch, *reinterpret_cast<typename Attention::Shared*>(shared));
  attention.run(begin, end);
}

template <class T, int width>
void launch_attend_heads(const TallAttentionLaunch& launch, Stream stream) {
  using Attention = HeadAttention<T, width>;
  const dim3 grid(static_cast<unsigned>(launch.num_workers),
                  cuda::num_blocks(launch.heads * width, Attention::block_features));
  cuda::launch_overlapped(attend_heads<T, width>, grid, tall_attention_threads,
                          sizeof(typename Attention::Shared), stream, launch);
}

template <class T, int width>
int resident_attend_heads() {
  constexpr int bytes = static_cast<int>(sizeof(typename HeadAttention<T, width>::Shared));
  return cuda::resident_blocks(attend_heads<T, width>, tall_attention_threads, bytes, bytes);
}

template <class T>
constexpr HeadAttentionFunctions make_head_attention() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return HeadAttentionFunctions{
        TallAttentionFunction{launch_attend_heads<T, tall_head_widths[i]>,
                              resident_attend_heads<T, tall_head_widths[i]>}...};
  }
  (std::make_index_sequence<tall_head_widths.size()>{});
}

}  // namespace tessera::ops
