// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tiles/cuda/quad_segments.cuh"
#include "tiles/quad_fragment.hpp"
#include "tiles/quad_order.hpp"

/// The words and columns of tiles, written from quads.
namespace tessera::tiles {

/// The tiles of windows before each, and their steps: both in one number, to be added up at once.
struct QuadOffsets {
  static constexpr int tile_shift = 32;
  static constexpr EdgeOffset of_window(std::int32_t quads) {
    const EdgeOffset steps = (quads + quads_per_step - 1) / quads_per_step;
    return (steps + 1) / 2 << tile_shift | steps;
  }
  static constexpr EdgeOffset tiles(EdgeOffset sum) { return sum >> tile_shift; }
  static constexpr EdgeOffset steps(EdgeOffset sum) {
    return sum & ((EdgeOffset{1} << tile_shift) - 1);
  }
};

inline constexpr int tile_quads = 2 * quads_per_step;

/// What the words of tiles are made of.
struct QuadsView {
  int height = 16;
  std::int64_t num_tiles = 0;
  const EdgeOffset* offsets = nullptr;  ///< see `QuadOffsets`
  const std::int32_t* quads_of_windows = nullptr;
  const std::int32_t* columns_of_windows = nullptr;
  const std::int32_t* quads_before = nullptr;  ///< in the window, by segments
  const QuadNote* notes = nullptr;
  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;
};

/// The columns of a window's quad; -1: none.
struct NotedQuad {
  __device__ NotedQuad(const SetsView& view, const QuadsView& quads, std::int64_t window,
                       std::int32_t quad) {
    const QuadOrder order{quads.columns_of_windows[window]};
    const auto before = [&](std::int32_t segment) {
      return quads.quads_before[view.segment_number(window, segment)];
    };
    std::int32_t in_window = 0;
    for (std::int32_t end = order.num_segments(); end - in_window > 1;) {
      const std::int32_t middle = (in_window + end) / 2;
      (before(middle) <= quad ? in_window : end) = middle;
    }
    const Segment segment(view, window, order, in_window);
    const QuadNote note = quads.notes[segment.first_note + quad - before(in_window)];
    const int places[] = {note.x, note.y, note.z, note.w};
#pragma unroll
    for (int i = 0; i < quad_columns; ++i) {
      columns[i] = places[i] > 0 ? segment.column(places[i] - 1) : -1;
    }
  }

  std::int32_t columns[quad_columns];
};

/// What stands for the entries of a quad (tiles/quad_fragment.hpp), for 16 rows: a bit for each
/// that says whether the entry is there, the first entry's in the low half, and two for its index,
/// where the bits of even rows are, or of odd ones and the next.
struct alignas(16) QuadPlanes {
  std::uint32_t even_digits;
  std::uint32_t present;
  std::uint32_t odd_digits;
  std::uint32_t present_again;
};

/// From the rows that use each column.
__device__ inline QuadPlanes planes_of(const std::uint32_t (&rows)[quad_columns]) {
  const auto [a, b, c, d] = rows;
  const auto both = [](std::uint32_t first, std::uint32_t second) {
    return (first & 0xffffu) | second << 16;
  };
  // The first index is 0 but where the first column used is b or c; the second is 3 but where that
  // is not d.
  const std::uint32_t second_is_b = a & b;
  const std::uint32_t second_is_c = c & (a | b);
  const std::uint32_t low = both(b & ~a, ~second_is_c);
  const std::uint32_t high = both(c & ~(a | b), ~second_is_b);
  const std::uint32_t present = both(a | b | c, d | second_is_b | second_is_c);
  constexpr std::uint32_t even = 0x55555555u;
  return {(low & even) | (high & even) << 1, present, (low >> 1 & even) | (high & ~even), present};
}

/// The words of 16 rows and a tile, from its 16 quads.
__device__ inline void write_strip(const QuadPlanes* quads, std::uint32_t* words) {
  const int lane = lane_number();
  const int group = lane / 4;
  const int step = lane % 4 / 2;
  const int half = lane % 2;
  // Of rows `group` and `group + 8`, of the first entry and the second: a byte for each.
  std::uint32_t digits[4];
  std::uint32_t present[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto* const of_rows = reinterpret_cast<const uint2*>(quads + 8 * step + 4 * half + i);
    const uint2 planes = of_rows[group % 2];
    const std::uint32_t entries = planes.x >> (group & ~1) & 0x03030303u;
    digits[i] = (entries | entries >> 14) & 0x0f0fu;  // four bits for each row
    const std::uint32_t there = planes.y >> group & 0x01010101u;
    present[i] = there | there >> 7;  // two bits for each entry
  }
  words[lane] = __byte_perm(digits[0] | digits[1] << 4, digits[2] | digits[3] << 4, 0x5140);
  // Four lanes have bits of both words: each keeps one and gives the other away.
  const std::uint32_t first = __byte_perm(present[0], present[1], 0x6420) << (2 * (lane % 4));
  const std::uint32_t second = __byte_perm(present[2], present[3], 0x6420) << (2 * (lane % 4));
  std::uint32_t kept = half == 0 ? first : second;
  kept |= __shfl_xor_sync(all_lanes, half == 0 ? second : first, 1);
  kept |= __shfl_xor_sync(all_lanes, kept, 2);
  if (step == 0) words[32 + 2 * group + half] = kept;
}

/// `cuda::lower_bound` by all lanes of a warp, which look at 32 values at once.
__device__ inline std::int64_t find_in_warp(const EdgeOffset* values, std::int64_t end,
                                            EdgeOffset wanted) {
  std::int64_t begin = 0;
  while (begin < end) {
    const std::int64_t stride = (end - begin + 31) / 32;
    const std::int64_t at = begin + (lane_number() + 1) * stride - 1;
    const bool below = at < end && values[at] < wanted;
    begin = min(end, begin + __popc(__ballot_sync(all_lanes, below)) * stride);
    end = min(end, begin + stride - 1);
  }
  return begin;
}

/// A warp for each tile. Half of its lanes have the quads for 32 rows, the others for the next 32,
/// as often as there are 64.
static __global__ __launch_bounds__(quad_block_threads) void write_tiles(const SetsView view,
                                                                         const QuadsView quads) {
  __shared__ QuadPlanes planes[quad_block_warps][2][32];
  const std::int64_t tile = warp_number();
  if (tile >= quads.num_tiles) return;
  const EdgeOffset tiles_to_here = (tile + 1) << QuadOffsets::tile_shift;
  const std::int64_t window = find_in_warp(quads.offsets, view.num_windows + 1, tiles_to_here) - 1;
  const std::int32_t num_quads = quads.quads_of_windows[window];
  const auto in_window =
      static_cast<std::int32_t>(tile - QuadOffsets::tiles(quads.offsets[window]));
  const std::int32_t quad = tile_quads * in_window + lane_number() % tile_quads;
  // Quads beyond the last have no entries, and repeat its first column.
  const NotedQuad noted(view, quads, window, min(quad, num_quads - 1));
  const std::int64_t first_column = view.first_column(window);
  const int set_words = row_set_words(quads.height);
  const std::uint32_t* sets[quad_columns];  // null: no column
#pragma unroll
  for (int i = 0; i < quad_columns; ++i) {
    const bool is_used = quad < num_quads && noted.columns[i] >= 0;
    sets[i] = is_used ? view.sets + (first_column + noted.columns[i]) * set_words : nullptr;
  }
  const int strips = quads.height / 16;
  std::uint32_t* const words = quads.words + tile * strips * quad_strip_words;
  for (int first_strip = 0; first_strip < strips; first_strip += 4) {
    const int word = first_strip / 2 + lane_number() / tile_quads;
    std::uint32_t rows[quad_columns] = {};
#pragma unroll
    for (int i = 0; i < quad_columns; ++i) {
      if (sets[i] != nullptr && word < set_words) rows[i] = sets[i][word];
    }
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      // The other half was read before all lanes came here.
      QuadPlanes* const of_rows = planes[threadIdx.x / 32][upper];
      of_rows[lane_number()] = planes_of(rows);
      __syncwarp();
#pragma unroll
      for (int of_warp = 0; of_warp < 2; ++of_warp) {
        const int strip = first_strip + 2 * of_warp + upper;
        if (strip < strips)
          write_strip(of_rows + tile_quads * of_warp, words + strip * quad_strip_words);
      }
#pragma unroll
      for (int i = 0; i < quad_columns; ++i) rows[i] >>= 16;
    }
  }
  const std::int64_t place = QuadOffsets::steps(quads.offsets[window]) * quad_step_columns +
                             std::int64_t{quad} * quad_columns;
  const std::int64_t end = QuadOffsets::steps(quads.offsets[window + 1]) * quad_step_columns;
  if (lane_number() < tile_quads && place < end) {
    const auto column = [&](std::int32_t number) {
      const bool is_used = quad < num_quads && number >= 0;
      return view.columns[first_column + (is_used ? number : noted.columns[0])];
    };
    *reinterpret_cast<int4*>(quads.columns + place) = {
        column(noted.columns[0]), column(noted.columns[1]), column(noted.columns[2]),
        column(noted.columns[3])};
  }
}

}  // namespace tessera::tiles
