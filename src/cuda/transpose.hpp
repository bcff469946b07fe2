// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"

namespace tessera::cuda {

/// A^T by A's columns: a stable sort of A's entries, which lie by rows, by their columns. Only
/// queued; its offsets are on the GPU alone.
DeviceRows transposed_rows(const DeviceRows& rows, const Place& place);

/// What `device_columns` returns from now on: columns whose offsets have come to this process.
void keep_columns(const Graph& graph, DeviceRows columns, const Place& place);

/// From now on nobody needs the CSC for these.
void know_columns(const Graph& graph, const SharedArray<EdgeOffset>& col_offsets);

}  // namespace tessera::cuda
