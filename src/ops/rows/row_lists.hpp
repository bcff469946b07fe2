// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/rows/cut.hpp"
#include "ops/rows/launch.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

/// Lists are ordered only among so many neighbours, which share sources that the cache then has.
inline constexpr VertexId list_window_rows = 4096;
/// Where neighbours share more, among so many of them, a divisor of the above: rows of about the
/// same length are then a little farther from equal, and sources are in the cache more often.
inline constexpr VertexId near_list_rows = 512;

/// How many rows of each list stand before a window of neighbours.
struct ListStart {
  std::int32_t short_row = 0;
  std::int32_t wide_row = 0;
};

/// Every one of the rows once: in a piece or several, for a warp, or for a team. The lists of short
/// and of wide rows are made where they are used, on the GPU; here they are counted.
struct RowsSchedule {
  std::vector<LongPiece> pieces;
  std::vector<SplitRow> split_rows;
  std::int64_t num_slots = 0;
  /// Sizes of lists. Short rows have one if the policy is listed: all that are in no other.
  std::int64_t num_wide = 0;
  std::int64_t num_short = 0;
  /// For each window, and behind the last; empty where all rows are short.
  std::vector<ListStart> starts;
};

RowsSchedule make_rows_schedule(const RowLengths& rows, const RowsPolicy& policy,
                                const RowsCut& cut);

/// So many windows of neighbours need no array on the GPU to say where their lists begin.
inline constexpr int few_list_windows = 32;

/// Which rows the lists of short and of wide rows have.
struct RowListsLaunch {
  VertexId num_rows = 0;
  const VertexId* ids = nullptr;  ///< which rows of the matrix; null: all
  cuda::Offsets offsets;          ///< of the matrix
  const VertexId* indices = nullptr;
  EdgeOffset short_row = 0;                 ///< the longest
  EdgeOffset wide_row = 0;                  ///< the longest; longer ones are cut into pieces
  int short_step = 1;                       ///< edges of a team's step, a power of two
  int wide_step = 1;                        ///< of a warp's
  VertexId sorted_rows = list_window_rows;  ///< neighbours that are sorted, a divisor of a window
  RowStart* short_rows = nullptr;           ///< null: they need no list
  RowSlice* wide_rows = nullptr;
  /// Where the lists of each window of neighbours begin, and behind the last where they end: in the
  /// launch itself, or, if there are more windows, in an array.
  bool all_short = true;
  ListStart few_starts[few_list_windows + 1] = {};
  const ListStart* starts = nullptr;

  /// Puts few starts into the launch; returns those that go to an array.
  std::span<const ListStart> set_starts(const RowsSchedule& schedule);
};

/// Lists rows, those of most steps first among neighbours that are sorted, and equal ones in their
/// order. Short rows have their first columns beside their places. All arrays are on the current
/// GPU.
void list_rows(const RowListsLaunch& launch, Stream stream);

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
