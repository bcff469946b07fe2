// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// Puts each row's first columns beside its place; all arrays on the current GPU.
void fill_row_starts(const RowSlice* slices, std::int64_t count, const VertexId* indices,
                     RowStart* starts, Stream stream);

}  // namespace tessera::ops
