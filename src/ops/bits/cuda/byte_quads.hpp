// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// Some tiles of a window of 16 rows.
struct QuadPiece {
  std::int32_t first_row = 0;
  std::int32_t first_tile = 0;
  std::int32_t first_step = 0;  ///< of 32 columns, two for each tile
  std::int32_t num_steps = 0;
  std::int32_t is_part = 0;  ///< whether the window has others: sums are added to what is there
};

/// Codes summed over windows of 16 rows whose columns stand in quads (tiles/quad_tiles.hpp).
struct ByteQuadsLaunch {
  const QuadPiece* pieces = nullptr;
  std::int64_t num_pieces = 0;
  bool has_parts = false;  ///< whether any is one
  const VertexId* columns = nullptr;
  const std::uint32_t* words = nullptr;
  const std::uint8_t* codes = nullptr;  ///< rows are multiples of 16 bytes
  std::int64_t code_stride = 0;
  std::int64_t width = 0;  ///< bytes of a row
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

void sum_byte_quads(const ByteQuadsLaunch& launch, Stream stream);

}  // namespace tessera::ops
