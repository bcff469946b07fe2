// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuts.hpp"

#include <vector>

#include "cuda/array.hpp"
#include "graph/cut.hpp"

namespace tessera::cuda {

Cuts cut_long_rows(std::span<const EdgeOffset> offsets, EdgeOffset longest, const Place& place) {
  Cuts cuts;
  cuts.longest = longest;
  std::vector<Piece> pieces;
  std::vector<CutRow> cut_rows;
  Cutter cutter;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const EdgeOffset begin = offsets[i];
    const EdgeOffset length = offsets[i + 1] - begin;
    if (length <= longest) continue;
    const auto row = static_cast<VertexId>(i);
    const Cut cut = cutter.cut(EqualParts::of_at_most(length, longest));
    cut_rows.push_back({row, cut.first_slot(), cut.num_slots()});
    cut.for_parts([&](const CutPart& part) {
      pieces.push_back({row, part.slot, cut.first_slot(), cut.num_slots(), begin + part.begin,
                        begin + part.end});
    });
  }
  cuts.num_slots = cutter.num_slots();
  cuts.pieces = to_device(pieces, place);
  cuts.cut_rows = to_device(cut_rows, place);
  return cuts;
}

}  // namespace tessera::cuda
