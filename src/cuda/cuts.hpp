// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "cuda/rows.hpp"
#include "tessera/core/memory.hpp"

/// Long rows, of A or of its transpose, cut into pieces, so that no warp still works on one when
/// all others are done. What the pieces of a row compute stands in consecutive slots.
namespace tessera::cuda {

struct Piece {
  VertexId row = 0;
  std::int32_t slot = 0;
  std::int32_t first_slot = 0;  ///< of the row
  std::int32_t num_slots = 0;
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
};

struct CutRow {
  VertexId row = 0;
  std::int32_t first_slot = 0;
  std::int32_t num_slots = 0;
};

/// Rows and their pieces, as a kernel sees them.
struct CutRows {
  VertexId num_rows = 0;
  Offsets offsets;
  EdgeOffset longest = 0;  ///< a row with more edges is cut
  const Piece* pieces = nullptr;
  std::int64_t num_pieces = 0;
  const CutRow* cut_rows = nullptr;
  std::int64_t num_cut_rows = 0;
};

/// The pieces of one graph's rows or columns on a GPU. They depend on the graph alone.
struct Cuts {
  EdgeOffset longest = 0;
  Buffer<Piece> pieces;
  Buffer<CutRow> cut_rows;
  std::int64_t num_slots = 0;

  CutRows rows(const DeviceRows& matrix) const noexcept {
    return {matrix.num_rows, matrix.offsets(), longest,        pieces.data(),
            pieces.size(),   cut_rows.data(),  cut_rows.size()};
  }
};

Cuts cut_long_rows(std::span<const EdgeOffset> offsets, EdgeOffset longest, const Place& place);

}  // namespace tessera::cuda
