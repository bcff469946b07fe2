// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "cuda/rows.hpp"
#include "ops/aggregate_update/cuda/fused/launch.hpp"

namespace tessera::ops {

/// Rows of more edges are summed beforehand: four lanes would take long for them, and keep the
/// other rows of their window waiting.
inline constexpr EdgeOffset longest_update_row = 32;

/// Which rows are summed beforehand, and how they are cut.
struct UpdateSchedule {
  std::vector<UpdatePiece> pieces;
  std::vector<cuda::CutRow> long_rows;
};

/// A piece has at most 128 edges, and more only where a row would have more than 64 pieces. The cut
/// depends on the graph alone.
UpdateSchedule make_update_schedule(std::span<const EdgeOffset> offsets);

/// Lists all rows of a matrix on the current GPU: of every `block_rows` neighbours, at most 1024,
/// those with most edges first, and equal ones in their order. Rows of a window then have about as
/// many edges, and few wait for the longest of them.
void list_update_rows(const cuda::DeviceRows& matrix, int block_rows, RowSlice* list,
                      Stream stream);

}  // namespace tessera::ops
