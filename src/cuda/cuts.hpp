// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "cuda/rows.hpp"
#include "tessera/core/memory.hpp"

/// Long rows (or columns: both are lines) cut into pieces, so that no warp still works on one when
/// all others are done. What the pieces of a line compute stands in consecutive slots.
namespace tessera::cuda {

struct Piece {
  VertexId line = 0;
  std::int32_t slot = 0;
  std::int32_t first_slot = 0;  ///< of the line
  std::int32_t num_slots = 0;
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
};

struct CutLine {
  VertexId line = 0;
  std::int32_t first_slot = 0;
  std::int32_t num_slots = 0;
};

/// Lines and their pieces, as a kernel sees them.
struct Lines {
  VertexId num_lines = 0;
  Offsets offsets;
  EdgeOffset longest = 0;  ///< a line with more edges is cut
  const Piece* pieces = nullptr;
  std::int64_t num_pieces = 0;
  const CutLine* cut_lines = nullptr;
  std::int64_t num_cut_lines = 0;
};

/// The pieces of one graph's rows or columns on a GPU. They depend on the graph alone.
struct Cuts {
  EdgeOffset longest = 0;
  Buffer<Piece> pieces;
  Buffer<CutLine> cut_lines;
  std::int64_t num_slots = 0;

  Lines lines(const DeviceRows& rows) const noexcept {
    return {rows.num_rows, rows.offsets(),   longest,         pieces.data(),
            pieces.size(), cut_lines.data(), cut_lines.size()};
  }
};

Cuts cut_long_lines(std::span<const EdgeOffset> offsets, EdgeOffset longest, const Place& place);

}  // namespace tessera::cuda
