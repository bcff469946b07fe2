// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/attention/cuda/rows/launch.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::ops {

/// Which rows go to whole warps, in one piece or several; all others are short.
struct AttentionSchedule {
  Buffer<RowPiece> pieces;
  EdgeOffset short_row = 0;
  std::int64_t num_slots = 0;
  std::uint32_t num_cut_rows = 0;
};

/// Rows of more than `short_row` edges are listed, those of more than `longest_piece` are cut.
AttentionSchedule make_attention_schedule(std::span<const EdgeOffset> offsets, EdgeOffset short_row,
                                          EdgeOffset longest_piece, const Place& place);

}  // namespace tessera::ops
