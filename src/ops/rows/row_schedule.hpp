// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/types.hpp"

/// Rows cut into pieces of work, for all ops that go over a graph row by row.
namespace tessera::ops {

/// Whole rows with at most `max_edges_per_range` edges together, or (slot >= 0) so many edges of
/// one long row. Where rows are summed, the result of such a part goes to a slot of a workspace.
struct RowRange {
  VertexId row_begin = 0;
  VertexId row_end = 0;
  EdgeOffset edge_begin = 0;
  EdgeOffset edge_end = 0;
  std::int64_t slot = -1;
};

/// Below this many products a run takes a few microseconds, less than waking threads.
inline constexpr std::int64_t min_parallel_work = 1 << 16;

inline constexpr EdgeOffset max_edges_per_range = 2048;

/// Rows cost time even when they are empty: their output is written.
inline constexpr VertexId max_rows_per_range = 1024;

/// A row too long for one range: its partial results are `num_slots` consecutive slots.
struct LongRow {
  VertexId row = 0;
  std::int64_t first_slot = 0;
  std::int64_t num_slots = 0;
};

/// Rows cut into ranges of about equal work. The cut depends on the graph alone, so results have
/// the same bits for any number of threads.
struct RowSchedule {
  std::vector<RowRange> ranges;
  std::vector<LongRow> long_rows;
  std::int64_t num_slots = 0;
};

RowSchedule make_row_schedule(VertexId num_rows, const EdgeOffset* row_offsets);

}  // namespace tessera::ops
