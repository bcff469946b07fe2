// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/schedule.hpp"

#include "cuda/array.hpp"
#include "graph/equal_parts.hpp"

namespace tessera::ops {

/// Pieces of long rows come first, so that none of them still runs when all others are done.
AttentionSchedule make_attention_schedule(std::span<const EdgeOffset> offsets, EdgeOffset short_row,
                                          EdgeOffset longest_piece, const Place& place) {
  AttentionSchedule schedule;
  schedule.short_row = short_row;
  std::vector<RowPiece> pieces, whole_rows;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const EdgeOffset begin = offsets[i];
    const EdgeOffset length = offsets[i + 1] - begin;
    if (length <= short_row) continue;
    RowPiece piece;
    piece.row = static_cast<VertexId>(i);
    const auto parts = EqualParts::of_at_most(length, longest_piece);
    if (parts.count() == 1) {
      piece.begin = begin;
      piece.count = static_cast<std::int32_t>(length);
      whole_rows.push_back(piece);
      continue;
    }
    piece.first_slot = static_cast<std::int32_t>(schedule.num_slots);
    piece.num_slots = static_cast<std::int32_t>(parts.count());
    piece.cut_row = static_cast<std::int32_t>(schedule.num_cut_rows++);
    for (EdgeOffset part = 0; part < parts.count(); ++part) {
      piece.begin = begin + parts.begin(part);
      piece.count = static_cast<std::int32_t>(parts.end(part) - parts.begin(part));
      piece.slot = static_cast<std::int32_t>(schedule.num_slots++);
      pieces.push_back(piece);
    }
  }
  pieces.insert(pieces.end(), whole_rows.begin(), whole_rows.end());
  schedule.pieces = cuda::to_device(std::span<const RowPiece>(pieces), place);
  return schedule;
}

}  // namespace tessera::ops
