// SPDX-License-Identifier: Apache-2.0
#include "tiles/tile_values.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "tiles/value_bits.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

/// Tiles that one task takes.
constexpr std::int64_t grain = 64;

/// Sets the starts of a tile's words and returns how many entries its halves have.
void count_entries(std::span<const std::uint32_t> words, std::uint32_t* starts, int (&counts)[2]) {
  counts[0] = counts[1] = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    starts[i] = static_cast<std::uint32_t>(counts[0]) | static_cast<std::uint32_t>(counts[1]) << 16;
    for (int half = 0; half < 2; ++half)
      counts[half] += run_of(std::popcount(words[i] & half_bits(half)));
  }
  const std::uint32_t before = static_cast<std::uint32_t>(units_of(counts[0]) * value_unit) << 16;
  for (std::size_t i = 0; i < words.size(); ++i) starts[i] += before;
}

class Placing {
 public:
  Placing(const Graph& graph, const TiledGraph& tiled, Side side)
      : tiled_(tiled), position_of_(graph, side) {}

  void place_window(std::int64_t window, std::span<const std::int32_t> unit_offsets,
                    std::span<const std::uint32_t> starts, std::int32_t* edges) const {
    const VertexId* const columns =
        tiled_.columns.data() + tiled_.step_offsets[window] * step_columns;
    const EdgeOffset first_tile = tiled_.tile_offsets[window];
    for (EdgeOffset tile = first_tile; tile < tiled_.tile_offsets[window + 1]; ++tile) {
      const std::int64_t first_entry =
          std::int64_t{unit_offsets[static_cast<std::size_t>(2 * tile)]} * value_unit;
      const VertexId* const tile_columns_of = columns + (tile - first_tile) * tile_columns;
      for (int word = 0; word < tiled_.words_per_tile(); ++word) {
        const std::int64_t at = tile * tiled_.words_per_tile() + word;
        const std::uint32_t bits = tiled_.words[at];
        const std::uint32_t start = starts[static_cast<std::size_t>(at)];
        for (int half = 0; half < 2; ++half) {
          std::int32_t* next = edges + first_entry + (start >> (16 * half) & 0xffffu);
          for_bits(bits, half, [&](int pair, int odd) {
            const ValuePlace place = value_place(word, pair, odd);
            *next++ =
                position_of_(window * tiled_.height + place.row, tile_columns_of[place.column]);
          });
        }
      }
    }
  }

 private:
  const TiledGraph& tiled_;
  EdgePositions position_of_;
};

}  // namespace

ValueLayout place_values(const Graph& graph, const TiledGraph& tiled, Side side) {
  check_value_height(tiled.height);
  const std::int64_t tiles = tiled.num_tiles();
  const int words = tiled.words_per_tile();
  Buffer<std::uint32_t> starts(tiles * words);
  Buffer<std::uint32_t> totals(tiles);
  parallel_for(tiles, grain, [&](std::int64_t tile) {
    int counts[2];
    const std::uint32_t* const of_tile = tiled.words.data() + tile * words;
    count_entries({of_tile, static_cast<std::size_t>(words)}, starts.data() + tile * words, counts);
    totals[tile] = static_cast<std::uint32_t>(counts[0]) | static_cast<std::uint32_t>(counts[1])
                                                               << 16;
  });
  Buffer<std::int32_t> offsets = unit_offsets_of(totals.span());
  Buffer<std::int32_t> edges(std::int64_t{offsets[2 * tiles]} * value_unit);
  parallel_for(edges.size(), 1 << 14, [&](std::int64_t i) { edges[i] = -1; });
  const Placing placing(graph, tiled, side);
  parallel_for(tiled.num_windows(), 1, [&](std::int64_t window) {
    placing.place_window(window, offsets.span(), starts.span(), edges.data());
  });
  ValueLayout layout;
  layout.unit_offsets = std::move(offsets);
  layout.starts = std::move(starts);
  layout.edges = std::move(edges);
  return layout;
}

SharedArray<std::uint32_t> pack_values(const ValueLayout& layout, std::span<const float> values,
                                       Precision precision) {
  Buffer<std::uint32_t> entries(layout.edges.size());
  parallel_for(entries.size(), 1 << 14, [&](std::int64_t i) {
    const std::int32_t edge = layout.edges[i];
    entries[i] = edge < 0 ? 0 : value_entry(values[static_cast<std::size_t>(edge)], precision);
  });
  return SharedArray<std::uint32_t>(std::move(entries));
}

void check_value_height(int height) {
  check_height(height);
  if (height >= 16) return;
  throw Error(ErrorCode::unsupported, "values beside windows of 8 rows", "height",
              "use windows of 16 rows or more");
}

Buffer<std::int32_t> unit_offsets_of(std::span<const std::uint32_t> totals) {
  Buffer<std::int32_t> offsets(2 * static_cast<std::int64_t>(totals.size()) + 1);
  std::int64_t units = 0;
  for (std::size_t tile = 0; tile < totals.size(); ++tile) {
    for (int half = 0; half < 2; ++half) {
      offsets[static_cast<std::int64_t>(2 * tile) + half] = static_cast<std::int32_t>(units);
      units += units_of(static_cast<int>(totals[tile] >> (16 * half) & 0xffffu));
    }
    // Entries are counted with 32 bits.
    if (units > std::numeric_limits<std::int32_t>::max() / value_unit) {
      throw Error(ErrorCode::unsupported, "more than 2^31 - 1 values beside the tiles of one graph",
                  "tiles", "partition the graph");
    }
  }
  offsets[2 * static_cast<std::int64_t>(totals.size())] = static_cast<std::int32_t>(units);
  return offsets;
}

}  // namespace tessera::tiles
