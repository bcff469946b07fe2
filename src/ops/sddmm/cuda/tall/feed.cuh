// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/sddmm/cuda/tall/launch.hpp"

namespace tessera::ops {

/// How a kernel is cut to fit. Rows come in chunks of `chunk_bytes` (zeros where the features end).
/// `held` chunks of the window's rows of U stay in registers; with 0, as many chunks as there are
/// pass through, with U's again for every tile.
template <class T_, int chunk_bytes_, int held_, int num_slots_>
struct TallDotShape {
  using T = T_;
  static constexpr int chunk_bytes = chunk_bytes_;
  static constexpr int held = held_;
  static constexpr int num_slots = num_slots_;
  static constexpr int height = tiles::dot_tile_height;

  static constexpr int groups = height / 64;
  static constexpr int threads = groups * 128;
  static constexpr bool holds = held > 0;
  static constexpr int held_chunks = holds ? held : 1;
  static constexpr int steps = chunk_bytes / 32;
  /// fp32 is multiplied as tf32, with what tf32 leaves out in a second plane.
  static constexpr bool splits = std::is_same_v<T, float>;

  using Tile = tiles::DotTile;
  /// Longer rows continue in another block of the same kind.
  static constexpr int row_pitch = chunk_bytes < 128 ? chunk_bytes : 128;
  using Layout = cuda::RowLayout<row_pitch>;
  static constexpr int block_bytes = 64 * row_pitch;
  static constexpr int slot_bytes = 64 * chunk_bytes;
  static constexpr int chunk_elements = chunk_bytes / static_cast<int>(sizeof(T));

  static constexpr int tile_ring = num_slots <= 4 ? 8 : 16;
  static_assert(tile_ring >= 2 * num_slots);
  /// One row of results, with some room so that rows begin in different banks.
  static constexpr int result_pitch = 64 * static_cast<int>(sizeof(T)) + 16;
  static constexpr int results_bytes = tiles::strip_rows * result_pitch;

  static constexpr int low_at = num_slots * slot_bytes;
  static constexpr int results_at = low_at + (splits ? 2 * slot_bytes : 0);
  static constexpr int tiles_at = results_at + threads / 32 * results_bytes;
  static constexpr int shared_bytes = tiles_at + tile_ring * static_cast<int>(sizeof(Tile));

  __device__ static std::uint32_t offset(int row, int unit) {
    constexpr int units = Layout::units;
    return static_cast<std::uint32_t>(unit / units * block_bytes) +
           Layout::offset(row, unit % units);
  }
};

/// What one slot of rows is.
struct SlotContent {
  bool targets;  ///< rows of U, not of V
  int group;     ///< of U: which 64 rows of the window
  int chunk;
  bool last;  ///< of its tile
};

/// The tiles of a block, in a ring in shared memory, and where in them a reader stands.
template <class Shape>
class TileFeed {
 public:
  using Tile = typename Shape::Tile;

  struct Place {
    unsigned number = 0;  ///< of the tile among the block's
    int phase = 0;
  };

  __device__ TileFeed(const TallDotsLaunch& launch, char* memory)
      : launch_(launch),
        ring_(reinterpret_cast<Tile*>(memory)),
        chunks_((launch.width + Shape::chunk_elements - 1) / Shape::chunk_elements),
        num_tiles_(num_own(launch)) {}

  __device__ const Tile& tile(unsigned number) const { return ring_[number % Shape::tile_ring]; }

  __device__ bool exists(unsigned number) const { return number < num_tiles_; }

  /// Asks for the block's next tile.
  __device__ void put() {
    constexpr int units = static_cast<int>(sizeof(Tile)) / 16;
    static_assert(units <= Shape::threads);
    const auto unit = static_cast<int>(threadIdx.x);
    if (exists(num_put_) && unit < units) {
      const char* const from = reinterpret_cast<const char*>(launch_.tiles) +
                               index_of(num_put_) * static_cast<int>(sizeof(Tile));
      cuda::copy_16_async(cuda::shared_address(ring_ + num_put_ % Shape::tile_ring) +
                              static_cast<std::uint32_t>(unit) * 16,
                          from + unit * 16);
    }
    ++num_put_;
  }
  __device__ unsigned num_put() const { return num_put_; }

  __device__ SlotContent part(Place place) const {
    if constexpr (Shape::holds) {
      const int targets = starts(place.number) ? Shape::held * Shape::groups : 0;
      if (place.phase < targets) {
        return {true, place.phase % Shape::groups,
                Shape::held == 1 ? 0 : place.phase / Shape::groups, false};
      }
      const int chunk = Shape::held == 1 ? 0 : place.phase - targets;
      return {false, 0, chunk, chunk + 1 == Shape::held};
    } else {
      const int group = place.phase % (Shape::groups + 1);
      const int chunk = place.phase / (Shape::groups + 1);
      const bool targets = group < Shape::groups;
      return {targets, group, chunk, !targets && chunk + 1 == chunks_};
    }
  }
  __device__ static Place after(Place place, bool last) {
    return last ? Place{place.number + 1, 0} : Place{place.number, place.phase + 1};
  }

 private:
  /// Whether the rows of U have to be loaded.
  __device__ bool starts(unsigned number) const {
    const unsigned within = number & ((1u << launch_.run_shift) - 1);
    return (within == 0) | (tile(number).first_of_window != 0);
  }

  __device__ std::int64_t index_of(unsigned number) const {
    const unsigned run = number >> launch_.run_shift;
    const unsigned within = number & ((1u << launch_.run_shift) - 1);
    return ((std::int64_t{run} * launch_.num_workers + blockIdx.x) << launch_.run_shift) + within;
  }
  /// All of its runs are whole but, for one block, the last.
  __device__ static unsigned num_own(const TallDotsLaunch& launch) {
    const int length = 1 << launch.run_shift;
    const int runs = (launch.num_tiles + length - 1) >> launch.run_shift;
    const int block = static_cast<int>(blockIdx.x);
    const int own = (runs - block + launch.num_workers - 1) / launch.num_workers;
    const bool has_last = (runs - 1) % launch.num_workers == block;
    const int missing = has_last ? runs * length - launch.num_tiles : 0;
    return static_cast<unsigned>(own * length - missing);
  }

  const TallDotsLaunch& launch_;
  Tile* ring_;
  int chunks_;
  unsigned num_tiles_;  ///< of the block
  unsigned num_put_ = 0;
};

/// 16 bytes, or zeros without a look at `global`.
__device__ inline void copy_16_or_zero(std::uint32_t shared, const void* global, bool copies) {
  asm volatile(
      "{\n.reg .pred zero;\nsetp.eq.u32 zero, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, zero;\n}" ::"r"(shared),
      "l"(global), "r"(static_cast<std::uint32_t>(copies))
      : "memory");
}

/// Brings rows into slots. A thread has the same 16 bytes of all rows that it brings. Rows that a
/// tile does not have, and features beyond the last, become 0.
template <class Shape>
class RowLoader {
 public:
  using T = typename Shape::T;
  using Tile = typename Shape::Tile;
  static constexpr int units = Shape::chunk_bytes / 16;
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));
  static constexpr int rows_at_once = Shape::threads / units;
  static constexpr int passes = rows_at_once >= 64 ? 1 : 64 / rows_at_once;
  static_assert(rows_at_once % 8 == 0);

  __device__ RowLoader(const TallDotsLaunch& launch, std::uint32_t slots)
      : num_rows_(launch.num_rows), row_(static_cast<int>(threadIdx.x) / units), slots_(slots) {
    const int unit = static_cast<int>(threadIdx.x) % units;
    to_ = Shape::offset(row_, unit);
    left_ = launch.width - unit * elements;
    const std::int64_t first = std::int64_t{blockIdx.y} * launch.width + unit * elements;
    constexpr int size = static_cast<int>(sizeof(T));
    u_ = static_cast<const char*>(launch.u) + first * size;
    v_ = static_cast<const char*>(launch.v) + first * size;
    u_bytes_ = static_cast<std::uint32_t>(launch.u_stride * size);
    v_bytes_ = static_cast<std::uint32_t>(launch.v_stride * size);
  }

  __device__ void load(const Tile& tile, SlotContent part, int slot) const {
    const char* const source = (part.targets ? u_ : v_) + part.chunk * Shape::chunk_bytes;
    const std::uint32_t row_bytes = part.targets ? u_bytes_ : v_bytes_;
    const std::uint32_t to = slots_ + static_cast<std::uint32_t>(slot * Shape::slot_bytes) + to_;
    const VertexId first_row = tile.first_row + part.group * 64;
    const bool inside = part.chunk * Shape::chunk_elements < left_;
    const int rows = !inside ? 0 : part.targets ? num_rows_ - first_row : tile.num_columns;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const int row = row_ + pass * rows_at_once;
      if (rows_at_once > 64 && row >= 64) break;
      const VertexId id = part.targets ? first_row + row : tile.columns[row];
      copy_16_or_zero(
          to + static_cast<std::uint32_t>(pass * rows_at_once * row_pitch),
          source + static_cast<std::uint64_t>(static_cast<std::uint32_t>(id)) * row_bytes,
          row < rows);
    }
  }

  /// What tf32 leaves out of the features that this thread brought.
  __device__ void split(int slot, int plane) const {
    const std::uint32_t from = slots_ + static_cast<std::uint32_t>(slot * Shape::slot_bytes) + to_;
    const std::uint32_t to =
        slots_ + static_cast<std::uint32_t>(Shape::low_at + plane * Shape::slot_bytes) + to_;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      if (row_ >= 64) break;
      const auto at = static_cast<std::uint32_t>(pass * rows_at_once * row_pitch);
      float x, y, z, w;
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                   : "r"(from + at)
                   : "memory");
      asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to + at), "f"(low(x)),
                   "f"(low(y)), "f"(low(z)), "f"(low(w))
                   : "memory");
    }
  }

  __device__ static float low(float value) {
    return value - __uint_as_float(__float_as_uint(value) & 0xffffe000u);
  }

 private:
  static constexpr int row_pitch = Shape::row_pitch;

  VertexId num_rows_;
  int row_;
  int left_;  ///< features of a head from this thread's on
  const char* u_;
  const char* v_;
  std::uint32_t u_bytes_;  ///< from one row to the next
  std::uint32_t v_bytes_;
  std::uint32_t slots_;
  std::uint32_t to_;  ///< within a slot
};

}  // namespace tessera::ops
