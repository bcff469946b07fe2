// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/schedule.hpp"

#include "cuda/array.hpp"
#include "graph/cut.hpp"

namespace tessera::ops {

/// Pieces of long rows come first, so that none of them still runs when all others are done.
AttentionSchedule make_attention_schedule(std::span<const EdgeOffset> offsets, EdgeOffset short_row,
                                          EdgeOffset longest_piece, const Place& place) {
  AttentionSchedule schedule;
  schedule.short_row = short_row;
  std::vector<RowPiece> pieces, whole_rows;
  Cutter cutter;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const EdgeOffset length = offsets[i + 1] - offsets[i];
    if (length <= short_row) continue;
    const Cut cut = cutter.cut(EqualParts::of_at_most(length, longest_piece));
    RowPiece piece;
    piece.row = static_cast<VertexId>(i);
    piece.first_slot = cut.first_slot();
    piece.num_slots = cut.num_slots();
    if (!cut.is_whole()) piece.cut_row = static_cast<std::int32_t>(schedule.num_cut_rows++);
    cut.for_parts([&](const CutPart& part) {
      piece.begin = offsets[i] + part.begin;
      piece.count = static_cast<std::int32_t>(part.end - part.begin);
      piece.slot = part.slot;
      (cut.is_whole() ? whole_rows : pieces).push_back(piece);
    });
  }
  schedule.num_slots = cutter.num_slots();
  pieces.insert(pieces.end(), whole_rows.begin(), whole_rows.end());
  schedule.pieces = cuda::to_device(std::span<const RowPiece>(pieces), place);
  return schedule;
}

}  // namespace tessera::ops
