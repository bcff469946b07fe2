// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "ops/windows/edge_launch.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// Gathered rows of a tile in shared memory.
namespace tessera::ops {

/// Of the first rows in shared memory, as matrix units want it.
inline constexpr int tile_alignment = 1024;

/// 64 rows of `features` 16-bit numbers, in blocks of up to 64 features. The 16-byte units of a row
/// are exchanged by its number, so that neither writing rows nor reading eight of them makes banks
/// collide; blocks of 64 features are as matrix units read them (cuda/wgmma.cuh).
template <int features>
struct TileRows {
  static constexpr int units = features / 8;
  static constexpr int block_units = units < 8 ? units : 8;
  static constexpr int row_bytes = block_units * 16;  ///< from one row of a block to the next
  static constexpr int block_bytes = tiles::tile_columns * row_bytes;
  static constexpr int bytes = units / block_units * block_bytes;
  /// Neighbouring rows that a thread brings 16 bytes of.
  static constexpr int share = tiles::tile_columns * units / tall_window_threads;

  static constexpr int rows_per_line = 8 / block_units;

  __device__ static std::uint32_t offset(int row, int unit) {
    // Masks: remainders of signed numbers take four instructions.
    const int place = (unit ^ row / rows_per_line) & (block_units - 1);
    return static_cast<std::uint32_t>(unit / block_units * block_bytes + row * row_bytes +
                                      place * 16);
  }

  /// What this thread brings of `matrix`; nothing where the unit lies beyond the last feature.
  struct Copy {
    const char* from = nullptr;
    std::uint32_t row_bytes = 0;
    bool active = false;

    __device__ Copy(const void* matrix, std::int64_t stride, std::int64_t first_feature,
                    std::int64_t num_features) {
      const std::int64_t feature = first_feature + unit_of_thread() * 8;
      active = feature < num_features;
      from = static_cast<const char*>(matrix) + feature * 2;
      row_bytes = static_cast<std::uint32_t>(stride * 2);
    }

    /// `vertices` are those of `row_of_thread`, of which the first `num_rows` rows exist: all of a
    /// thread's or none, as they are whole steps.
    __device__ void start(std::uint32_t to, const VertexId (&vertices)[share], int num_rows) const {
      if (row_of_thread(0) >= num_rows) return;
      const std::uint32_t first = offset(row_of_thread(0), unit_of_thread());
#pragma unroll
      for (int i = 0; i < share; ++i) {
        // The rows of a thread begin with a multiple of their number, so that i alone exchanges
        // units: no offset but the first is kept or computed anew.
        constexpr std::uint32_t places = block_units - 1;
        const std::uint32_t exchanged =
            first ^ (static_cast<std::uint32_t>(i / rows_per_line) & places) * 16;
        const std::uint32_t at =
            to + exchanged + static_cast<std::uint32_t>(i * TileRows::row_bytes);
        if (active) {
          const auto vertex = static_cast<std::uint64_t>(static_cast<std::uint32_t>(vertices[i]));
          cuda::copy_16_async(at, from + vertex * row_bytes);
        } else {
          cuda::zero_16_async(at, from);
        }
      }
    }
  };

  // Divided without a sign, which takes fewer instructions.
  __device__ static int unit_of_thread() { return static_cast<int>(threadIdx.x % unsigned{units}); }
  __device__ static int row_of_thread(int i) {
    return static_cast<int>(threadIdx.x / unsigned{units}) * share + i;
  }

  /// Of the columns of a tile those of `row_of_thread`.
  __device__ static void load_ids(VertexId (&vertices)[share], const VertexId* columns,
                                  int num_columns) {
    if (row_of_thread(0) >= num_columns) return;
    using Several = std::conditional_t<share == 2, int2, int4>;
    constexpr int at_once = static_cast<int>(sizeof(Several) / sizeof(VertexId));
    static_assert(share % at_once == 0);
#pragma unroll
    for (int i = 0; i < share; i += at_once) {
      const Several several = __ldg(reinterpret_cast<const Several*>(columns + row_of_thread(i)));
      memcpy(vertices + i, &several, sizeof(several));
    }
  }

  /// B operands of products with features as columns: rows [16 step, + 16) of the tile.
  /// Two neighbouring groups of eight features from unit `unit` on.
  __device__ static void load_columns(std::uint32_t (&blocks)[4], std::uint32_t rows, int step,
                                      int unit) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int row = step * 16 + lane % 16;
    cuda::load_blocks_transposed(blocks, rows + offset(row, unit + lane / 16));
  }
  /// One group of eight features, in the first two blocks.
  __device__ static void load_column(std::uint32_t (&blocks)[4], std::uint32_t rows, int step,
                                     int unit) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    cuda::load_blocks_transposed(blocks, rows + offset(step * 16 + lane % 16, unit));
  }
  /// One group of eight features, of two steps.
  __device__ static void load_column_of_two(std::uint32_t (&blocks)[4], std::uint32_t rows,
                                            int step, int unit) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    cuda::load_blocks_transposed(blocks, rows + offset(step * 16 + lane, unit));
  }

  /// B operands of products with rows of the tile as columns: 16 features from unit `unit` on, of
  /// rows [8 group, + 16).
  __device__ static void load_rows(std::uint32_t (&blocks)[4], std::uint32_t rows, int group,
                                   int unit) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int row = group * 8 + lane / 16 * 8 + lane % 8;
    cuda::load_blocks(blocks, rows + offset(row, unit + lane / 8 % 2));
  }
  /// 8 features, of rows [8 group, + 32).
  __device__ static void load_rows_of_four(std::uint32_t (&blocks)[4], std::uint32_t rows,
                                           int group, int unit) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    cuda::load_blocks(blocks, rows + offset(group * 8 + lane, unit));
  }
};

}  // namespace tessera::ops
