// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/spmm/cuda/rows/schedule.hpp"

namespace tessera::ops {

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
  /// Where the lists of each window of neighbours (schedule.hpp) begin, and behind the last where
  /// they end: in the launch itself, or, if there are more windows, in an array.
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

}  // namespace tessera::ops
