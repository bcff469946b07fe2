// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/wgmma.cuh"
#include "ops/attention/cuda/tall/plane_rows.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// How passes over windows of 64 rows get their tiles: a row of each column, or two, of the matrix
/// that scores are of and of another one. The next tiles are under way while one is computed, be
/// they of the same window or not.
namespace tessera::ops {

// What the columns of a tile bring beside their rows: nothing, the row states of targets, or what
// `put` makes of the terms of sources.
struct NoColumns {};
template <class S, int heads>
struct StateColumns {
  using State = S;
  State of[heads][tiles::tile_columns];
};
template <class Columns>
concept BringStates = requires {
  typename Columns::State;
};
template <class Columns>
concept BringTerms = requires(Columns& columns) {
  columns.put(0, 0, 0.0f, 0.0f);  // which head and column, its term in powers of two, the slope
};

/// Tiles that are there or on their way.
template <class T, int width>
inline constexpr int gathered_stages =
    width* tall_block_heads(width) * static_cast<int>(sizeof(T)) > 128 ? 2 : 3;

/// `Pass` has `begin_piece`, `add`, `finish` and `end`, and may have a `cut` of its own. Of a
/// column the rows of `gathered` matrices are brought, of the values alone or of sources before
/// them. Behind the stages there is room for `own_matrices` matrices of the window's own rows.
template <class Pass, class T, int width, int gathered, int own_matrices, class Columns,
          int num_stages = gathered_stages<T, width>>
class GatheredWindows {
 public:
  static constexpr int heads = tall_block_heads(width);
  static constexpr int features = width * heads;
  using Planes = PlaneRows<T, features>;
  using Rows = typename Planes::Rows;
  using Part = typename Planes::Part;
  /// Whether groups of warps multiply, on matrix units that read shared memory themselves.
  static constexpr bool by_groups = false;
  static constexpr bool has_columns = BringStates<Columns> || BringTerms<Columns>;
  static constexpr int columns_at = (num_stages * gathered + own_matrices) * Rows::bytes;
  static constexpr int shared_bytes =
      columns_at + (has_columns ? num_stages * static_cast<int>(sizeof(Columns)) : 0);

  __device__ GatheredWindows(const TallAttentionLaunch& launch, char* shared)
      : launch_(launch),
        shared_(shared),
        partners_{copy_of(launch.source, launch.source_stride),
                  copy_of(launch.value, launch.value_stride)} {}

  /// Pieces [begin, end), be they of one window or another, without a seam.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    TileWalk walk(launch_, begin, end);
    std::uint32_t words[num_stages - 1];
#pragma unroll
    for (int turn = 0; turn < num_stages - 1; ++turn) {
      const Tile tile = load_ids(walk);
      words[turn] = tile.word;
      start(turn, tile);
      if (turn < num_stages - 2) put_terms(turn);
    }
    Tile tile = load_ids(walk);
    int turn = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      const tiles::Piece piece = launch_.pieces[i];
      pass().begin_piece(piece);
      if (i + 1 < end) pass().expect(launch_.pieces[i + 1]);
      for (int steps = piece.num_steps; steps > 0; steps -= tile_steps) {
        const int next = turn == num_stages - 1 ? 0 : turn + 1;
        const int last = turn == 0 ? num_stages - 1 : turn - 1;
        put_terms(num_stages == 3 ? next : turn);
        cuda::wait_for_copies<num_stages - 2>();
        pass().cut(turn, steps * tiles::step_columns);
        if constexpr (Pass::by_groups) cuda::fence_shared_for_wgmma();
        __syncthreads();
        start(last, tile);
        const TilePattern pattern{words[0]};
        if constexpr (num_stages == 3) words[0] = words[1];
        words[num_stages - 2] = tile.word;
        tile = load_ids(walk);
        pass().add(turn, pattern, steps < tile_steps ? steps : tile_steps);
        turn = next;
      }
      pass().finish(piece);
    }
    pass().end();
    // Even what was asked for last must have arrived before the memory is another block's.
    cuda::wait_for_copies<0>();
  }

 protected:
  using Copy = typename Planes::Copy;
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int units = width / 8;
  /// Heads of which a thread brings what belongs to a column.
  static constexpr int column_threads = tall_attention_threads / tiles::tile_columns;
  static constexpr int column_heads = (heads + column_threads - 1) / column_threads;
  __device__ static int head_of_thread(int i) {
    return static_cast<int>(threadIdx.x / unsigned{tiles::tile_columns}) + i * column_threads;
  }

  __device__ static int column_of_thread() {
    return static_cast<int>(threadIdx.x % unsigned{tiles::tile_columns});
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x / 32 * 16); }
  __device__ static int first_head() { return static_cast<int>(blockIdx.y) * heads; }
  __device__ static int first_feature() { return static_cast<int>(blockIdx.y) * features; }
  __device__ int all_features() const { return static_cast<int>(launch_.heads) * width; }

  __device__ Copy copy_of(const void* matrix, std::int64_t stride) const {
    Copy copy(matrix, stride, first_feature(), all_features());
    // A block of one head has all of its features; so the compiler knows, too.
    if constexpr (heads == 1) copy.active = true;
    return copy;
  }

  __device__ Pass& pass() { return static_cast<Pass&>(*this); }

  /// What the pass will read of a window's own rows should be near by then: each warp asks for its
  /// 16 rows of the block's features.
  __device__ void expect(const tiles::Piece&) const {}
  __device__ void expect_rows(const void* matrix, std::int64_t stride,
                              const tiles::Piece& piece) const {
    constexpr int line_features = 128 / static_cast<int>(sizeof(T));
    const int place = first_row() + lane();
    if (lane() >= 16 || place >= piece.num_rows) return;
    const T* const row = static_cast<const T*>(matrix) +
                         (std::int64_t{piece.first_row} + place) * stride + first_feature();
#pragma unroll
    for (int feature = 0; feature < features; feature += line_features) {
      cuda::expect_in_l2(row + feature);
    }
  }

  /// Makes operands of what this thread has brought of the first `num_rows` rows of a tile.
  __device__ void cut(int turn, int num_rows) {
#pragma unroll
    for (int matrix = 0; matrix < gathered; ++matrix) {
      Planes::cut(memory_of(turn, matrix), num_rows);
    }
  }

  /// The rows of columns: those that scores are of where there are two, then the others. `turn` is
  /// that of the stages, which are taken in a ring.
  __device__ char* memory_of(int turn, int matrix) const {
    return shared_ + (turn * gathered + matrix) * Rows::bytes;
  }
  __device__ std::uint32_t rows_of(int turn, int matrix) const {
    return cuda::shared_address(memory_of(turn, matrix));
  }
  /// The same of the window itself.
  __device__ char* own_memory(int matrix) const {
    return shared_ + (num_stages * gathered + matrix) * Rows::bytes;
  }
  __device__ Columns& columns_of(int turn) const {
    return reinterpret_cast<Columns*>(shared_ + columns_at)[turn];
  }

  /// Brings the 16 rows of this warp from a matrix.
  __device__ void bring_own(int matrix, const tiles::Piece& piece, const void* from,
                            std::int64_t stride) const {
#pragma unroll
    for (int i = lane(); i < 16 * Planes::units; i += 32) {
      const int place = first_row() + i / Planes::units;
      const int unit = i % Planes::units;
      const int feature = first_feature() + unit * 8;
      char* const to = own_memory(matrix);
      if (place < piece.num_rows && feature < all_features()) {
        const T* const row =
            static_cast<const T*>(from) + (std::int64_t{piece.first_row} + place) * stride;
        Planes::put(to, place, unit, row + feature);
      } else {
        Planes::clear(to, place, unit);
      }
    }
  }

  /// A tile on its way: its columns that this thread brings rows of, and this thread's bits.
  struct Tile {
    int num_columns;  ///< 0 after the last tile
    std::uint32_t word;
    VertexId rows[Planes::share];
    VertexId column;
  };
  __device__ Tile load_ids(TileWalk& walk) const {
    Tile tile{};
    if (!walk.find()) return tile;
    tile.num_columns = walk.num_columns();
    tile.word =
        __ldg(launch_.words + std::int64_t{walk.tile} * tall_attention_threads + threadIdx.x);
    const VertexId* const columns = launch_.columns + std::int64_t{walk.step} * tiles::step_columns;
    Planes::load_ids(tile.rows, columns, tile.num_columns);
    if constexpr (has_columns) {
      const int column = column_of_thread();
      if (column < tile.num_columns) tile.column = __ldg(columns + column);
    }
    walk.advance();
    return tile;
  }
  __device__ void start(int turn, const Tile& tile) {
    if constexpr (gathered == 2) {
      partners_[0].start(rows_of(turn, 0), tile.rows, tile.num_columns);
    }
    partners_[1].start(rows_of(turn, gathered - 1), tile.rows, tile.num_columns);
    const int column = column_of_thread();
#pragma unroll
    for (int i = 0; i < (has_columns ? column_heads : 0); ++i) {
      const int h = head_of_thread(i);
      const int head = first_head() + h;
      const bool exists = column < tile.num_columns && h < heads && head < launch_.heads;
      if constexpr (BringTerms<Columns>) {
        terms_[i] = cuda::narrow<T>(0.0f);
        if (exists) {
          terms_[i] = __ldg(static_cast<const T*>(launch_.source) +
                            std::int64_t{tile.column} * launch_.source_stride + head);
        }
      } else if constexpr (BringStates<Columns>) {
        using State = typename Columns::State;
        if (!exists) continue;
        const std::uint32_t to = cuda::shared_address(&columns_of(turn).of[h][column]);
        const State* const from = static_cast<const State*>(launch_.row_state) +
                                  std::int64_t{tile.column} * launch_.heads + head;
        if constexpr (sizeof(State) == 16) {
          cuda::copy_16_async(to, from);
        } else {
          cuda::copy_8_async(to, from);
        }
      }
    }
    cuda::commit_copies();
  }
  /// Terms come through registers, as they are too small for a copy: those that were asked for last
  /// go where they belong.
  __device__ void put_terms(int turn) const {
    if constexpr (BringTerms<Columns>) {
#pragma unroll
      for (int i = 0; i < column_heads; ++i) {
        const int h = head_of_thread(i);
        if (h >= heads) break;
        columns_of(turn).put(h, column_of_thread(), cuda::widen(terms_[i]) * log2_of_e,
                             launch_.slope);
      }
    }
  }

  const TallAttentionLaunch& launch_;
  char* shared_;
  Copy partners_[2];
  T terms_[column_heads];
};

/// The pieces of this block.
template <class Pass>
__device__ void run_gathered_windows(const TallAttentionLaunch& launch) {
  extern __shared__ __align__(tile_alignment) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  Pass pass(launch, shared);
  pass.run(begin, end);
}

/// The launcher of a kernel that does so, and the blocks of it that a GPU holds.
template <class Pass, auto kernel>
constexpr TallAttentionFunction gathered_function() {
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            cuda::num_blocks(launch.heads, Pass::heads));
            cuda::launch_overlapped(kernel, grid, tall_attention_threads,
                                    std::size_t{Pass::shared_bytes}, stream, launch);
          },
          [] {
            return cuda::resident_blocks(kernel, tall_attention_threads, Pass::shared_bytes,
                                         Pass::shared_bytes);
          }};
}

}  // namespace tessera::ops
