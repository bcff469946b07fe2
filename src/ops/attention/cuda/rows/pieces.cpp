// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/schedule.hpp"

namespace tessera::ops {

AttentionSchedule make_attention_schedule(const cuda::DeviceRows& rows,
                                          const DegreeStatistics& degrees, const AttentionCut& cut,
                                          const Place& place) {
  const PieceCounts counts = count_pieces(rows.host_offsets.span(), degrees, cut);
  AttentionSchedule schedule;
  schedule.pieces = list_pieces(rows, counts, cut, place);
  schedule.short_row = cut.short_row;
  schedule.num_slots = counts.num_slots;
  schedule.num_cut_rows = counts.num_cut_rows;
  return schedule;
}

}  // namespace tessera::ops
