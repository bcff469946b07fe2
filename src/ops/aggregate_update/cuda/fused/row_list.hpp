// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "ops/spmm/cuda/rows/launch.hpp"
#include "tessera/core/device.hpp"

namespace tessera::ops {

/// Lists all rows of a matrix on the current GPU: of every `block_rows` neighbours, at most 1024,
/// those with most edges first, and equal ones in their order. Rows of a window then have about as
/// many edges, and few wait for the longest of them.
void list_update_rows(const cuda::DeviceRows& matrix, int block_rows, RowSlice* list,
                      Stream stream);

}  // namespace tessera::ops
