// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/wgmma.cuh"
#include "ops/attention/cuda/tall/tile_walk.cuh"
#include "ops/attention/cuda/window_kernels.cuh"
#include "ops/windows/edge_weights.cuh"
#include "ops/windows/plane_rows.cuh"

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

/// Or whatever the pass asks for and puts there itself, for the columns whose rows a thread brings:
/// `ask_with_rows` with a tile's rows, and `put_with_rows` of what was asked for last, a tile
/// ahead.
template <class Columns>
concept BringWithRows = requires {
  typename Columns::WithRows;
};

/// Where a block has one head, half of the threads have no column to bring anything of. With the
/// first tile of a piece they may bring the terms of its own rows, and log_sums that the columns
/// want, so that nothing has to be waited for when the piece begins.
template <class Columns>
concept BringOwnTerms = requires(Columns& columns) {
  columns.put_own(0, 0.0f, 0.0f, 0.0f);  // which row, its term and log_sum in powers of two, slope
  Columns::wants_log_sums;
};

/// Tiles that are there or on their way.
template <class T, int width>
inline constexpr int gathered_stages =
    width* tall_block_heads(width) * static_cast<int>(sizeof(T)) > 128 ? 2 : 3;

/// `Pass` has `begin_piece`, `add`, `finish` and `end`, and may have a `cut` of its own; where own
/// terms are brought, `take_own` comes before the first `add` of a piece. Of a column the rows of
/// `gathered` matrices are brought, of the values alone or of sources before them. Behind the
/// stages there is room for `own_matrices` matrices of the window's own rows. A block has
/// `block_heads` heads.
template <class Pass, class T, int width, int gathered, int own_matrices, class Columns,
          int num_stages = gathered_stages<T, width>, int block_heads = tall_block_heads(width)>
class GatheredWindows {
 public:
  // As a kernel (window_kernels.cuh); how many blocks an SM should hold is for the pass to say.
  using Launch = WindowsLaunch;
  static constexpr int threads = tall_window_threads;
  static constexpr int alignment = tile_alignment;
  static constexpr bool starts_alone = true;
  static unsigned num_slices(const WindowsLaunch& launch) {
    return cuda::num_blocks(launch.heads, block_heads);
  }

  static constexpr int heads = block_heads;
  static constexpr int features = width * heads;
  using Planes = PlaneRows<T, features>;
  using Rows = typename Planes::Rows;
  using Part = typename Planes::Part;
  /// Whether groups of warps multiply, on matrix units that read shared memory themselves.
  static constexpr bool by_groups = false;
  static constexpr bool has_columns =
      BringStates<Columns> || BringTerms<Columns> || BringWithRows<Columns>;
  static constexpr bool has_own_terms = BringOwnTerms<Columns>;
  static_assert(!has_own_terms || heads == 1);
  static constexpr int columns_at = (num_stages * gathered + own_matrices) * Rows::bytes;
  static constexpr int words_at =
      columns_at + (has_columns ? num_stages * static_cast<int>(sizeof(Columns)) : 0);
  static constexpr int shared_bytes = words_at + num_stages * tall_window_threads * 4;

  __device__ GatheredWindows(const WindowsLaunch& launch, char* shared)
      : launch_(launch),
        shared_(shared),
        partners_{copy_of(launch.source, launch.source_stride),
                  copy_of(launch.value, launch.value_stride)} {}

  /// Pieces [begin, end), be they of one window or another, without a seam.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    TileWalkAhead walk(launch_, begin, end);
#pragma unroll
    for (int turn = 0; turn < num_stages - 1; ++turn) {
      const Tile tile = ask_for_ids(turn, walk, walk.find());
      start(turn, tile);
      if (turn < num_stages - 2) put_terms(turn);
    }
    Tile tile = ask_for_ids(num_stages - 1, walk, walk.find());
    int turn = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      const tiles::Piece piece = launch_.pieces[i];
      pass().begin_piece(piece);
      bool begins = true;
      for (int steps = piece.num_steps; steps > 0; steps -= tile_steps) {
        const int next = turn == num_stages - 1 ? 0 : turn + 1;
        const int last = turn == 0 ? num_stages - 1 : turn - 1;
        put_terms(num_stages == 3 ? next : turn);
        // What was loaded before is looked at before anything else is asked for.
        const bool found = walk.find();
        cuda::wait_for_copies<num_stages - 2>();
        pass().cut(turn, steps * tiles::step_columns);
        if constexpr (Pass::by_groups) cuda::fence_shared_for_wgmma();
        __syncthreads();
        start(last, tile);
        const TilePattern pattern{word_of(turn)};
        tile = ask_for_ids(turn, walk, found);
        if constexpr (has_own_terms) {
          if (begins) pass().take_own(turn);
          begins = false;
        }
        pass().add(turn, pattern, steps < tile_steps ? steps : tile_steps);
        turn = next;
      }
      // Loaded again: there are no registers to keep it in all the time.
      const tiles::Piece done = launch_.pieces[i];
      pass().finish(done);
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
  static constexpr int column_threads = tall_window_threads / tiles::tile_columns;
  static constexpr int column_heads = (heads + column_threads - 1) / column_threads;
  __device__ static int head_of_thread(int i) {
    return static_cast<int>(threadIdx.x / unsigned{tiles::tile_columns}) + i * column_threads;
  }

  __device__ static int column_of_thread() {
    return static_cast<int>(threadIdx.x % unsigned{tiles::tile_columns});
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x / 32 * 16); }
  /// Where the two rows of this lane lie in the window.
  __device__ static int place_of(int row) { return first_row() + lane() / 4 + 8 * row; }
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

  // What the pass will read of a window's own rows should be near by then: each warp asks for its
  // 16 rows of the block's features.

  __device__ void expect(const WindowRows&) const {}
  /// Those that every backward pass reads.
  template <bool by_rows>
  __device__ void expect_gradients(const WindowRows& rows) const {
    expect_rows(launch_.own_values, launch_.own_values_stride, rows);
    if constexpr (by_rows) expect_rows(launch_.own_output, launch_.own_output_stride, rows);
  }
  __device__ void expect_rows(const void* matrix, std::int64_t stride,
                              const WindowRows& rows) const {
    constexpr int line_features = 128 / static_cast<int>(sizeof(T));
    const int place = first_row() + lane();
    if (lane() >= 16 || place >= rows.count) return;
    const T* const row = static_cast<const T*>(matrix) +
                         (std::int64_t{rows.first} + place) * stride + first_feature();
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

  /// Asks for the 16 rows of this warp from a matrix; they are there after `wait_for_own`.
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

  __device__ static void wait_for_own() {
    cuda::commit_copies();
    cuda::wait_for_copies<0>();
    __syncwarp();
  }

  /// Whether this thread brings what belongs to an own row, not to a column.
  __device__ static bool brings_own_term() {
    return has_own_terms && threadIdx.x >= unsigned{tiles::tile_columns};
  }

  /// This thread's bits of a tile.
  __device__ std::uint32_t& word_of(int turn) const {
    return reinterpret_cast<std::uint32_t*>(shared_ +
                                            words_at)[turn * tall_window_threads + threadIdx.x];
  }

  __device__ static void copy_word_async(std::uint32_t to, const std::uint32_t* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
  }

  static constexpr VertexId none = -1;
  /// A tile on its way: its columns that this thread brings rows of, and the vertex that it brings
  /// what else belongs to it of, if any.
  struct Tile {
    int num_columns;  ///< 0 after the last tile
    VertexId rows[Planes::share];
    VertexId vertex;
  };
  /// Of the tile whose rows will be asked for next; its bits are copied meanwhile.
  __device__ Tile ask_for_ids(int turn, TileWalkAhead& walk, bool found) {
    Tile tile{};
    tile.vertex = none;
    if (!found) return tile;
    const WindowRows rows = walk.rows(launch_.num_rows);
    if (walk.begins) pass().expect(rows);
    tile.num_columns = walk.num_columns();
    copy_word_async(cuda::shared_address(&word_of(turn)),
                    launch_.words + std::int64_t{walk.tile} * tall_window_threads + threadIdx.x);
    const VertexId* const columns = launch_.columns + std::int64_t{walk.step} * tiles::step_columns;
    Planes::load_ids(tile.rows, columns, tile.num_columns);
    if constexpr (has_columns && !BringWithRows<Columns>) {
      const int column = column_of_thread();
      if (brings_own_term()) {
        if (walk.begins && column < rows.count) tile.vertex = rows.first + column;
      } else if (column < tile.num_columns) {
        tile.vertex = __ldg(columns + column);
      }
    }
    walk.advance();
    return tile;
  }
  __device__ void start(int turn, const Tile& tile) {
    if constexpr (gathered == 2) {
      partners_[0].start(rows_of(turn, 0), tile.rows, tile.num_columns);
    }
    partners_[1].start(rows_of(turn, gathered - 1), tile.rows, tile.num_columns);
    if (brings_own_term()) {
      if constexpr (has_own_terms) ask_for_own(tile.vertex);
    } else if constexpr (BringWithRows<Columns>) {
      pass().ask_with_rows(turn, tile.rows, tile.num_columns);
    } else if constexpr (has_columns) {
      ask_for_column(turn, tile.vertex);
    }
    cuda::commit_copies();
  }
  __device__ void ask_for_column(int turn, VertexId vertex) {
    const int column = column_of_thread();
#pragma unroll
    for (int i = 0; i < column_heads; ++i) {
      const int h = head_of_thread(i);
      const int head = first_head() + h;
      const bool exists = vertex != none && h < heads && head < launch_.heads;
      if constexpr (BringTerms<Columns>) {
        terms_[i] = cuda::narrow<T>(0.0f);
        if (exists) {
          terms_[i] = static_cast<const T*>(
              launch_.source)[std::int64_t{vertex} * launch_.source_stride + head];
        }
      } else if constexpr (BringStates<Columns>) {
        using State = typename Columns::State;
        if (!exists) continue;
        const std::uint32_t to = cuda::shared_address(&columns_of(turn).of[h][column]);
        const State* const from = static_cast<const State*>(launch_.row_state) +
                                  std::int64_t{vertex} * launch_.heads + head;
        if constexpr (sizeof(State) == 16) {
          cuda::copy_16_async(to, from);
        } else {
          cuda::copy_8_async(to, from);
        }
      }
    }
  }
  __device__ void ask_for_own(VertexId vertex) {
    terms_[0] = cuda::narrow<T>(0.0f);
    own_log_sum_ = 0;
    if (vertex == none) return;
    terms_[0] = static_cast<const T*>(
        launch_.target)[std::int64_t{vertex} * launch_.target_stride + first_head()];
    if constexpr (Columns::wants_log_sums) {
      own_log_sum_ = launch_.log_sum[std::int64_t{vertex} * launch_.log_sum_stride + first_head()];
    }
  }
  /// Terms come through registers, as they are too small for a copy: those that were asked for last
  /// go where they belong.
  __device__ void put_terms(int turn) {
    const int column = column_of_thread();
    if (brings_own_term()) {
      if constexpr (has_own_terms) {
        columns_of(turn).put_own(column, cuda::widen(terms_[0]) * log2_of_e,
                                 own_log_sum_ * log2_of_e, launch_.slope);
      }
    } else if constexpr (BringWithRows<Columns>) {
      pass().put_with_rows(turn);
    } else if constexpr (BringTerms<Columns>) {
#pragma unroll
      for (int i = 0; i < column_heads; ++i) {
        const int h = head_of_thread(i);
        if (h >= heads) break;
        columns_of(turn).put(h, column, cuda::widen(terms_[i]) * log2_of_e, launch_.slope);
      }
    }
  }

  const WindowsLaunch& launch_;
  char* shared_;
  Copy partners_[2];
  T terms_[column_heads];
  float own_log_sum_;
};

}  // namespace tessera::ops
