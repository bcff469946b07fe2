// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/tile_index.hpp"

#include <algorithm>

namespace tessera::ops {

TileIndex index_tiles(const quant::BitTensor& a, int rows_of_tile, int words_of_part) {
  const std::int64_t tiles = (a.rows + rows_of_tile - 1) / rows_of_tile;
  const std::int64_t parts = (a.words_per_row + words_of_part - 1) / words_of_part;
  const auto view = a.view();
  TileIndex index;
  index.all_parts = tiles * parts;
  index.offsets.push_back(0);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    std::vector<bool> used(static_cast<std::size_t>(parts), false);
    const std::int64_t end = std::min(a.rows, (tile + 1) * rows_of_tile);
    for (int plane = 0; plane < a.bits; ++plane) {
      for (std::int64_t row = tile * rows_of_tile; row < end; ++row) {
        const std::uint32_t* words = view.row(plane, row);
        for (std::int64_t word = 0; word < a.words_per_row; ++word) {
          if (words[word] != 0) used[static_cast<std::size_t>(word / words_of_part)] = true;
        }
      }
    }
    for (std::size_t part = 0; part < used.size(); ++part) {
      if (used[part]) index.parts.push_back(static_cast<std::int32_t>(part));
    }
    index.offsets.push_back(static_cast<std::int32_t>(index.parts.size()));
  }
  return index;
}

}  // namespace tessera::ops
