// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// Which rows a list of short rows has.
struct ShortRowsLaunch {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  EdgeOffset short_row = 0;  ///< longer ones are in other lists
  int step = 1;              ///< edges of a team's step, a power of two
  /// Where the list of each window of neighbours (schedule.hpp) begins; null: all rows are short.
  const std::int32_t* firsts = nullptr;
  RowStart* list = nullptr;
};

/// Lists short rows, those of most steps first among the rows of a window, and equal ones in their
/// order. Each has its first columns beside its place. All arrays are on the current GPU.
void list_short_rows(const ShortRowsLaunch& launch, Stream stream);

}  // namespace tessera::ops
