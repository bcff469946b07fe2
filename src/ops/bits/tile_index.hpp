// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/quant/bit_tensor.hpp"

namespace tessera::ops {

/// The parts of K in which a tile of rows has any bit.
struct TileIndex {
  std::vector<std::int32_t> offsets;  ///< one per tile, and the end
  std::vector<std::int32_t> parts;    ///< rising within a tile
  std::int64_t all_parts = 0;         ///< of all tiles, without skipping

  bool skips() const noexcept { return static_cast<std::int64_t>(parts.size()) < all_parts; }
};

TileIndex index_tiles(const quant::BitTensor& a, int rows_of_tile, int words_of_part);

}  // namespace tessera::ops
