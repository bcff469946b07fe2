// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// So many windows of neighbours need no array on the GPU to say where their lists begin.
inline constexpr int few_list_windows = 32;

/// Which rows a list of short rows has.
struct ShortRowsLaunch {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  EdgeOffset short_row = 0;  ///< longer ones are in other lists
  int step = 1;              ///< edges of a team's step, a power of two
  RowStart* list = nullptr;
  /// Where the list of each window of neighbours (schedule.hpp) begins, if not all rows are short:
  /// in the launch itself, or, if there are more windows, in an array.
  bool all_short = true;
  std::int32_t few_firsts[few_list_windows] = {};
  const std::int32_t* firsts = nullptr;
};

/// Lists short rows, those of most steps first among the rows of a window, and equal ones in their
/// order. Each has its first columns beside its place. All arrays are on the current GPU.
void list_short_rows(const ShortRowsLaunch& launch, Stream stream);

}  // namespace tessera::ops
