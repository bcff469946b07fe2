// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/rows/schedule.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

/// Neighbours among which lists are sorted: few where windows of them use each source twice and
/// rows of X are long. 16-bit ones are so short that equal teams count for more.
VertexId sorted_neighbours(const Graph& graph, tiles::Side side, Precision precision);

/// Every row of a matrix, or some by a policy with lists, with those who take it, on its GPU. Lists
/// are sorted among `sorted_rows` neighbours.
class ScheduledRows {
 public:
  ScheduledRows() = default;
  ScheduledRows(const cuda::DeviceRows& matrix, const RowLengths& rows, const RowsPolicy& policy,
                const RowsCut& cut, const Place& place, VertexId sorted_rows = list_window_rows);

  const RowsCut& cut() const noexcept { return cut_; }
  std::int64_t num_slots() const noexcept { return num_slots_; }
  std::int64_t num_split_rows() const noexcept { return split_rows_.size(); }

  /// Of a launch, without the memory that a run brings.
  RowsLaunch::Work work() const;

 private:
  RowsCut cut_;
  EdgeOffset short_row_ = 0;
  std::int64_t num_short_ = 0;
  std::int64_t num_slots_ = 0;
  Buffer<LongPiece> pieces_;
  Buffer<SplitRow> split_rows_;
  Buffer<RowStart> short_rows_;
  Buffer<RowSlice> wide_rows_;
};

}  // namespace tessera::ops
