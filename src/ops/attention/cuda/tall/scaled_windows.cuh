// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/scaled_sums.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/attention/cuda/window_kernels.cuh"

/// What the passes of GAT over windows of 64 rows share (scaled_sums.cuh says by which products).
/// While a tile of 64 columns is multiplied, the rows of the next one are in flight, and the ids
/// of the one after it. What a thread brings it also scales. Two warps share the features of a
/// block, each for 32 rows twice over.
namespace tessera::ops {

/// `Pass` has the members that are called through `pass()`. With `has_shifts`, exponents are less
/// by a number of each column and head, and the sums of weights are sums of weights times another.
template <class Pass, class T, int width, bool has_shifts>
class ScaledWindows {
 public:
  static constexpr int block_features = scaled_block_features(width);
  using Tile = ScaledTile<T, width, block_features, has_shifts>;
  using Unit = typename Tile::Unit;
  static constexpr int heads = Tile::heads;
  static constexpr int warp_units = Tile::units / 2;
  static constexpr int warp_heads = width < warp_units * 8 ? warp_units * 8 / width : 1;
  /// Units that a thread brings of a tile.
  static constexpr int share = tiles::tile_columns * Tile::units / tall_window_threads;

  struct Shared {
    Tile tiles[2];
    Unit arriving[share][tall_window_threads];
    /// Of rows, where cells take exponentials. Registers are dear, and these are seldom needed.
    float bases[tall_window_threads / 32][warp_heads][32];
  };

  // As a kernel (window_kernels.cuh).
  using Launch = WindowsLaunch;
  static constexpr int threads = tall_window_threads;
  static constexpr int blocks = width < 64 ? 3 : 2;
  static constexpr int shared_bytes = static_cast<int>(sizeof(Shared));
  static constexpr int alignment = 128;
  static constexpr bool starts_alone = false;
  static unsigned num_slices(const WindowsLaunch& launch) {
    return cuda::num_blocks(launch.heads * width, block_features);
  }

  __device__ ScaledWindows(const WindowsLaunch& launch, char* shared)
      : launch_(launch),
        shared_(*reinterpret_cast<Shared*>(shared)),
        first_feature_(static_cast<int>(blockIdx.y) * block_features),
        row_bytes_(static_cast<std::uint32_t>(launch.value_stride * sizeof(T))) {
    const int feature = first_feature_ + unit_of_thread() * 8;
    brings_ = feature < static_cast<int>(launch.heads) * width;
    values_ = static_cast<const char*>(launch.value) + std::int64_t{feature} * sizeof(T);
    // Of a head that there is, in any case.
    const int head = brings_ ? feature / width : 0;
    terms_ = static_cast<const T*>(launch.source) + head;
    if constexpr (has_shifts) states_ = static_cast<const float2*>(launch.row_state) + head;
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
        pass().add_unscaled(turn, bits, num_steps);
      }
      pass().finish(piece_.num_steps > 0 ? turn - 1 : 0);
    }
    cuda::wait_for_copies<0>();
  }

 protected:
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int head_units = warp_units / warp_heads;
  using Sums = SignedSums<head_units>;

  __device__ Pass& pass() { return static_cast<Pass&>(*this); }

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  /// Of this warp: the first of its rows in the window, of its units and of its heads in the block.
  __device__ static int first_row() { return warp() / 2 * 32; }
  __device__ static int first_unit() { return warp() % 2 * warp_units; }
  __device__ static int first_head() { return first_unit() * 8 / width; }

  __device__ static int unit_of_thread() { return static_cast<int>(threadIdx.x) % Tile::units; }
  __device__ static int column_of_thread(int i) {
    return static_cast<int>(threadIdx.x) / Tile::units + i * (tall_window_threads / Tile::units);
  }

  __device__ Tile& tile_of(int turn) const { return shared_.tiles[turn % 2]; }
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

  /// What a thread awaits of tiles: ids, then terms of columns, as they lie in memory; features go
  /// to shared memory.
  struct Arriving {
    VertexId ids[share];
    VertexId first_id;  ///< of the first column of the tile, whose exponents are c of a piece
    T r[share];
    T first_r;
    float2 states[has_shifts ? share : 1];
    float2 first_state;
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
      arriving.r[i] = __ldg(terms_ + arriving.ids[i] * launch_.source_stride);
      if constexpr (has_shifts) arriving.states[i] = state_of(arriving.ids[i]);
    }
    cuda::commit_copies();
    if (!place.begins) return;
    arriving.first_r = __ldg(terms_ + arriving.first_id * launch_.source_stride);
    if constexpr (has_shifts) arriving.first_state = state_of(arriving.first_id);
  }
  __device__ const char* features_of(VertexId vertex) const {
    return values_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(vertex)) * row_bytes_;
  }
  __device__ float2 state_of(VertexId vertex) const {
    return __ldg(states_ + std::int64_t{vertex} * launch_.heads);
  }
  /// Of a vertex without edges there is none; it is but filled in.
  __device__ static float shift_of(const float2& state) {
    return !has_shifts || state.x == -cuda::infinity ? 0.0f : state.x;
  }
  __device__ void load_words(std::uint32_t (&words)[2], const Place& place) const {
    words[0] = words[1] = 0;
    if (place.num_columns == 0) return;
    const std::uint32_t* const from =
        launch_.words + std::int64_t{place.tile} * tall_window_threads + first_row() * 2 + lane();
    words[0] = __ldg(from);
    words[1] = __ldg(from + 32);
  }

  /// Scales what this thread has brought; returns whether factors fail to serve for it.
  __device__ bool put(int turn, const Arriving& arriving, const Place& place) {
    const float slope = launch_.slope;
    cuda::wait_for_copies<0>();
    Tile& tile = tile_of(turn);
    const int unit = unit_of_thread();
    const int head = unit * 8 / width;
    const bool speaks = unit * 8 % width == 0;  // for the head
    if (place.begins) {
      const float r = cuda::widen(arriving.first_r) * log2_of_e;
      const float shift = shift_of(arriving.first_state);
      c_ = {r - shift, slope * r - shift};
    }
    bool fails = !(slope >= 0 && slope <= 1);
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int column = column_of_thread(i);
      if (column >= place.num_columns) continue;
      const float r = cuda::widen(arriving.r[i]) * log2_of_e;
      const float shift = has_shifts ? shift_of(arriving.states[i]) : 0.0f;
      const float number = has_shifts ? arriving.states[i].y : 1.0f;
      const Unit& from = shared_.arriving[i][threadIdx.x];
      if (failing_) {
        tile.put_unscaled(column, unit, from);
        if (speaks) tile.parts[head][column] = ColumnFactors().parts(number);
      } else {
        const float own = r - shift - c_.x;
        const float sloped = slope * r - shift - c_.y;
        fails = fails || !ColumnFactors::serve(own) || !ColumnFactors::serve(sloped);
        const ColumnFactors factors(own, sloped);
        const bool serve = tile.put_scaled(column, unit, from, factors);
        fails = fails || !serve;
        if (speaks) tile.parts[head][column] = factors.parts(number);
      }
      if (!speaks) continue;
      tile.r[head][column] = r;
      if constexpr (has_shifts) tile.shift[head][column] = shift;
    }
    if (speaks && column_of_thread(0) == 0) tile.c[head] = c_;
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
        minus_l_[h][i / 2][i % 2] = wanted ? 0 - cuda::widen(__ldg(from + head)) * log2_of_e : 0.0f;
      }
    }
#pragma unroll
    for (auto& of_head : sums_) {
#pragma unroll
      for (Sums& sums : of_head) sums.clear();
    }
  }

  /// Calls body(place, score of the even column, score of the odd one).
  template <class Body>
  __device__ void each_score(int h, int block, const Tile& tile, int step, Body&& body) const {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      const float2 r = *reinterpret_cast<const float2*>(&tile.r[first_head() + h][column]);
      const float minus_l = minus_l_[h][block][place % 2];
      body(place, leaky_power(r.x - minus_l, launch_.slope),
           leaky_power(r.y - minus_l, launch_.slope));
    }
  }

  /// Where factors serve no longer: for the whole block and the rest of the piece.
  __device__ void turn_to_exponentials(int turn, const Place& place) {
    failing_ = true;
    pass().fold_all(turn);
    Tile& tile = tile_of(turn);
    const int unit = unit_of_thread();
#pragma unroll 1
    for (int i = 0; i < share; ++i) {
      const int column = column_of_thread(i);
      if (column >= place.num_columns) continue;
      const VertexId vertex = id_at(place, column);
      Unit features{};
      const char* const from = features_of(vertex);
#pragma unroll
      for (int k = 0; k < Unit::count; ++k) {
        if (brings_) features.vectors[k] = __ldg(reinterpret_cast<const uint4*>(from) + k);
      }
      tile.put_unscaled(column, unit, features);
      if (unit * 8 % width != 0) continue;
      float number = 1;
      if constexpr (has_shifts) number = state_of(vertex).y;
      tile.parts[unit * 8 / width][column] = ColumnFactors().parts(number);
    }
    __syncthreads();
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
        const SignCells cells[2] = {SignCells(of_step[0], minus_l_[h][0], r),
                                    SignCells(of_step[1], minus_l_[h][1], r)};
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

  const WindowsLaunch& launch_;
  Shared& shared_;
  int first_feature_;
  std::uint32_t row_bytes_;
  bool brings_;
  bool failing_ = false;
  const char* values_;
  const T* terms_;
  const float2* states_ = nullptr;
  float2 c_ = {};
  tiles::Piece piece_;
  float minus_l_[warp_heads][2][2];  ///< terms of rows, less than 0 by them: 0 is +0
  Sums sums_[warp_heads][2];
};

}  // namespace tessera::ops
