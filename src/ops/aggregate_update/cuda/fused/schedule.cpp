// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/fused/schedule.hpp"

#include <algorithm>

namespace tessera::ops {

UpdateSchedule make_update_schedule(std::span<const EdgeOffset> offsets) {
  constexpr EdgeOffset piece_edges = 128;
  constexpr EdgeOffset most_pieces = 64;
  UpdateSchedule schedule;
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    const EdgeOffset begin = offsets[row];
    const EdgeOffset count = offsets[row + 1] - begin;
    if (count <= longest_update_row) continue;
    const EdgeOffset wanted = std::min((count + piece_edges - 1) / piece_edges, most_pieces);
    const EdgeOffset each = (count + wanted - 1) / wanted;
    cuda::CutRow& long_row = schedule.long_rows.emplace_back();
    long_row.row = static_cast<VertexId>(row);
    long_row.first_slot = static_cast<std::int32_t>(schedule.pieces.size());
    for (EdgeOffset done = 0; done < count; done += each) {
      schedule.pieces.push_back({begin + done, begin + std::min(done + each, count)});
    }
    long_row.num_slots = static_cast<std::int32_t>(schedule.pieces.size()) - long_row.first_slot;
  }
  return schedule;
}

}  // namespace tessera::ops
