// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat_exponentials.cuh"
#include "ops/attention/cuda/tall/packed_sums.cuh"
#include "ops/attention/cuda/window_kernels.cuh"

/// GAT over windows of 64 rows, weights and features multiplied in fp16. Tiles k + 1 and k + 2 are
/// in flight while tile k is computed, be they of this window or the next.
///
/// A piece with a tile that fp16 does not hold, of terms too far apart or features too large or
/// small, is computed once more without (`attend_unpacked`).
namespace tessera::ops {

/// The term of a head for row g + 8 `row` of this lane, in powers of two; 0 where there is none.
template <class T>
__device__ float own_term(const WindowsLaunch& launch, const tiles::Piece& piece, int head,
                          int row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int place = static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * row;
  if (place >= piece.num_rows || head >= launch.heads) return 0;
  return log2_of_e *
         cuda::widen(__ldg(static_cast<const T*>(launch.target) +
                           (std::int64_t{piece.first_row} + place) * launch.target_stride + head));
}

/// A piece of a window by an exponential per cell and bf16 features as they are, tile by tile in
/// `memory`. It is seldom needed, and nothing is in flight meanwhile.
template <int width, int features>
__device__ void attend_unpacked(const WindowsLaunch& launch, const tiles::Piece& piece,
                                char* memory) {
  using T = __nv_bfloat16;
  constexpr int heads = features / width;
  constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  using Rows = TileRows<features>;
  const int first_head = static_cast<int>(blockIdx.y) * heads;
  struct Columns {
    float r[heads][tiles::tile_columns];
  };
  auto& of_columns = *reinterpret_cast<Columns*>(memory + Rows::bytes);
  const typename Rows::Copy values(launch.value, launch.value_stride,
                                   std::int64_t{first_head} * width, launch.heads * width);
  float terms[heads][2];
#pragma unroll
  for (int i = 0; i < 2 * heads; ++i) {
    terms[i / 2][i % 2] = own_term<T>(launch, piece, first_head + i / 2, i % 2);
  }
  const GatExponentials<T, width, heads> form(launch.slope, terms);
  HeadSums<T, width> sums[heads];
  for (int done = 0; done < piece.num_steps; done += tile_steps) {
    const int steps = min(piece.num_steps - done, tile_steps);
    const int num_columns = steps * tiles::step_columns;
    const VertexId* const columns =
        launch.columns + (std::int64_t{piece.first_step} + done) * tiles::step_columns;
    __syncthreads();
    VertexId rows[Rows::share];
    Rows::load_ids(rows, columns, num_columns);
    values.start(cuda::shared_address(memory), rows, num_columns);
    cuda::commit_copies();
    for (int i = static_cast<int>(threadIdx.x); i < heads * num_columns; i += tall_window_threads) {
      const int head = first_head + i / num_columns;
      const int column = i % num_columns;
      const T* const from = static_cast<const T*>(launch.source) +
                            std::int64_t{__ldg(columns + column)} * launch.source_stride;
      of_columns.r[i / num_columns][column] =
          head < launch.heads ? cuda::widen(__ldg(from + head)) * log2_of_e : 0.0f;
    }
    const std::int64_t tile = std::int64_t{piece.first_tile} + done / tile_steps;
    const TilePattern pattern{__ldg(launch.words + tile * tall_window_threads + threadIdx.x)};
    cuda::wait_for_copies<0>();
    __syncthreads();
    form.template add<Rows>(sums, of_columns, cuda::shared_address(memory), pattern, steps);
  }
  finish_piece<T, width * heads>(launch, piece, sums);
}

template <int width, int features>
class PackedAttention {
 public:
  using T = __nv_bfloat16;
  static constexpr int heads = features / width;
  using Rows = TileRows<features>;
  using Stage = PackedStage<heads>;
  static constexpr int num_stages = 3;
  static constexpr int stage_bytes = Rows::bytes + static_cast<int>(sizeof(Stage));
  static constexpr int shared_bytes =
      num_stages * stage_bytes + static_cast<int>(sizeof(PackedRows<heads>));

  __device__ PackedAttention(const WindowsLaunch& launch, char* shared, std::int32_t begin,
                             std::int32_t end)
      : launch_(launch),
        shared_(shared),
        walk_(launch, begin, end),
        values_(launch.value, launch.value_stride, std::int64_t{blockIdx.y} * features,
                launch.heads * width) {
    rows().put_ones();
  }

  /// Pieces [begin, end) of one window or another, without a seam, until fp16 does not hold one:
  /// that one, or `end`.
  __device__ std::int32_t run(std::int32_t begin, std::int32_t end) {
    Tile tile = load_ids(walk_.find());
    words_[0] = tile.word;
    start(0, tile);
    put(0, fetch(tile));
    tile = load_ids(walk_.find());
    words_[1] = tile.word;
    start(1, tile);
    terms_ = fetch(tile);
    tile_ = load_ids(walk_.find());
    while (begin < end && add_piece(begin)) ++begin;
    // Even what was asked for last must have arrived before the memory is another's.
    cuda::wait_for_copies<0>();
    return begin;
  }

 private:
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;

  /// Whether fp16 holds all of it.
  __device__ bool add_piece(std::int32_t index) {
    const tiles::Piece piece = launch_.pieces[index];
    const bool serve = rows().template load<T>(launch_, piece, first_head());
    PackedSums<width, heads> sums;
    for (int steps = piece.num_steps; steps > 0; steps -= tile_steps, ++turn_) {
      const bool holds = convert(steps * tiles::step_columns) && serve;
      const bool all_hold = __syncthreads_and(holds ? 1 : 0) != 0;
      const TilePattern pattern = advance();
      if (!all_hold || stage_of(turn_).out_of_range.any()) return false;
      sums.add(stage_of(turn_), rows(), rows_of(turn_), pattern, min(steps, tile_steps));
    }
    // Loaded again: there are no registers to keep it in all the time.
    const tiles::Piece done = launch_.pieces[index];
    if (done.slot < 0) {
      sums.template store<T>(launch_, done, rows());
    } else {
      sums.template store_piece<T>(launch_, done, rows());
    }
    return true;
  }

  /// Stages of three turns.
  __device__ char* memory_of(int turn) const { return shared_ + turn % num_stages * stage_bytes; }
  __device__ std::uint32_t rows_of(int turn) const { return cuda::shared_address(memory_of(turn)); }
  __device__ Stage& stage_of(int turn) const {
    return *reinterpret_cast<Stage*>(memory_of(turn) + Rows::bytes);
  }

  __device__ PackedRows<heads>& rows() const {
    return *reinterpret_cast<PackedRows<heads>*>(shared_ + num_stages * stage_bytes);
  }
  __device__ static int first_head() { return static_cast<int>(blockIdx.y) * heads; }

  /// A tile on its way: its columns that this thread brings rows and terms of, and this thread's
  /// bits.
  struct Tile {
    int num_columns;  ///< 0 after the last tile
    std::uint32_t word;
    VertexId rows[Rows::share];
  };
  /// Of neighbouring threads each has a head of the same columns, whose terms lie side by side.
  struct Terms {
    int num_columns;
    T raw[Rows::share];  ///< as they lie in memory: who converted them would wait for them
  };

  __device__ Tile load_ids(bool found) {
    Tile tile{};
    if (!found) return tile;
    tile.num_columns = walk_.num_columns();
    tile.word = __ldg(launch_.words + std::int64_t{walk_.tile} * tall_window_threads + threadIdx.x);
    Rows::load_ids(tile.rows, columns_from(walk_.step), tile.num_columns);
    walk_.advance();
    return tile;
  }
  __device__ const VertexId* columns_from(int step) const {
    return launch_.columns + std::int64_t{step} * tiles::step_columns;
  }

  __device__ void start(int turn, const Tile& tile) const {
    values_.start(rows_of(turn), tile.rows, tile.num_columns);
    cuda::commit_copies();
  }
  /// Terms come through registers, a tile ahead.
  __device__ Terms fetch(const Tile& tile) const {
    Terms terms;
    terms.num_columns = tile.num_columns;
    const std::int64_t head = first_head() + Rows::unit_of_thread();
    const bool wanted = Rows::unit_of_thread() < heads && head < launch_.heads &&
                        Rows::row_of_thread(0) < tile.num_columns;
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) {
      terms.raw[i] = cuda::narrow<T>(0.0f);
      if (wanted) {
        terms.raw[i] = __ldg(static_cast<const T*>(launch_.source) +
                             std::int64_t{tile.rows[i]} * launch_.source_stride + head);
      }
    }
    return terms;
  }
  __device__ void put(int turn, const Terms& terms) const {
    if (terms.num_columns == 0) return;
    bool serve = true;
    const int h = Rows::unit_of_thread();
    if (h < heads) {
#pragma unroll
      for (int i = 0; i < Rows::share; i += 2) {
        serve = stage_of(turn).put(h, Rows::row_of_thread(i), cuda::widen(terms.raw[i]) * log2_of_e,
                                   cuda::widen(terms.raw[i + 1]) * log2_of_e, launch_.slope) &&
                serve;
      }
    }
    stage_of(turn).out_of_range.set(!serve);
  }

  /// Once all threads have what they brought of this turn's tile: asks for what comes later, and
  /// returns the tile's pattern.
  __device__ TilePattern advance() {
    put(turn_ + 1, terms_);
    // What was loaded before is looked at before anything else is asked for.
    const bool found = walk_.find();
    start(turn_ + 2, tile_);
    terms_ = fetch(tile_);
    const TilePattern pattern{words_[0]};
    words_[0] = words_[1];
    words_[1] = tile_.word;
    tile_ = load_ids(found);
    return pattern;
  }

  /// What this thread has brought of a tile becomes fp16; returns whether that holds it.
  __device__ bool convert(int num_columns) const {
    cuda::wait_for_copies<num_stages - 2>();
    const int place = static_cast<int>(threadIdx.x % unsigned{Rows::units});
    Fp16Range range;
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) {
      const int row = Rows::row_of_thread(i);
      if (row >= num_columns) break;
      uint4& unit = *reinterpret_cast<uint4*>(memory_of(turn_) + Rows::offset(row, place));
      unit = range.convert(unit);
    }
    return range.holds();
  }
  const WindowsLaunch& launch_;
  char* shared_;
  TileWalk walk_;
  typename Rows::Copy values_;
  int turn_ = 0;
  std::uint32_t words_[2];
  Terms terms_;
  Tile tile_;
};

template <int width, int features>
class PackedGat {
  using Attention = PackedAttention<width, features>;

 public:
  using Launch = WindowsLaunch;
  static constexpr int threads = tall_window_threads;
  static constexpr int blocks = 4;
  static constexpr int shared_bytes = Attention::shared_bytes;
  static constexpr int alignment = 128;
  static constexpr bool starts_alone = false;
  static unsigned num_slices(const WindowsLaunch& launch) {
    return cuda::num_blocks(launch.heads, Attention::heads);
  }

  __device__ PackedGat(const WindowsLaunch& launch, char* shared)
      : launch_(launch), shared_(shared) {}

  __device__ void run(std::int32_t begin, std::int32_t end) {
    while (begin < end) {
      begin = Attention(launch_, shared_, begin, end).run(begin, end);
      if (begin == end) return;
      const tiles::Piece piece = launch_.pieces[begin];
      attend_unpacked<width, features>(launch_, piece, shared_);
      __syncthreads();
      ++begin;
    }
  }

 private:
  const WindowsLaunch& launch_;
  char* shared_;
};

}  // namespace tessera::ops
