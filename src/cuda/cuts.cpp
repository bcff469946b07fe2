// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuts.hpp"

#include <vector>

#include "cuda/array.hpp"
#include "graph/equal_parts.hpp"

namespace tessera::cuda {

Cuts cut_long_lines(std::span<const EdgeOffset> offsets, EdgeOffset longest, const Place& place) {
  Cuts cuts;
  cuts.longest = longest;
  std::vector<Piece> pieces;
  std::vector<CutLine> cut_lines;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const EdgeOffset begin = offsets[i];
    const EdgeOffset length = offsets[i + 1] - begin;
    if (length <= longest) continue;
    const auto line = static_cast<VertexId>(i);
    const auto first_slot = static_cast<std::int32_t>(cuts.num_slots);
    const auto parts = EqualParts::of_at_most(length, longest);
    const auto num_slots = static_cast<std::int32_t>(parts.count());
    cut_lines.push_back({line, first_slot, num_slots});
    for (EdgeOffset part = 0; part < parts.count(); ++part) {
      pieces.push_back({line, static_cast<std::int32_t>(cuts.num_slots++), first_slot, num_slots,
                        begin + parts.begin(part), begin + parts.end(part)});
    }
  }
  cuts.pieces = to_device(std::span<const Piece>(pieces), place);
  cuts.cut_lines = to_device(std::span<const CutLine>(cut_lines), place);
  return cuts;
}

}  // namespace tessera::cuda
