// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/rows.hpp"
#include "graph/degrees.hpp"
#include "ops/attention/cuda/row_launch.hpp"
#include "ops/plan/workspace.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::ops {

/// Which rows go to whole warps: rows of more than `short_row` edges, those of more than
/// `longest_piece` in several pieces.
struct AttentionCut {
  EdgeOffset short_row = 0;
  EdgeOffset longest_piece = 0;
};

/// Lists of pieces are made for so many neighbouring rows at once.
inline constexpr VertexId piece_window_rows = 1024;

/// Where the pieces of a window of neighbouring rows begin.
struct PieceStart {
  std::int32_t whole_row = 0;  ///< among the rows that have one piece
  std::int32_t slot = 0;       ///< among the pieces of cut rows
  std::int32_t cut_row = 0;
};

/// How many pieces there are, and where those of each window begin: all that this process has to
/// know of them.
struct PieceCounts {
  std::vector<PieceStart> starts;  ///< none where there is no piece
  std::int64_t num_whole = 0;
  std::int64_t num_slots = 0;
  std::uint32_t num_cut_rows = 0;

  std::int64_t num_pieces() const noexcept { return num_whole + num_slots; }
};

/// Writes the list on the current GPU: pieces of cut rows first, so that none of them still runs
/// when all others are done, then the rows that are whole, each in their order.
Buffer<RowPiece> list_pieces(const cuda::DeviceRows& rows, const PieceCounts& counts,
                             const AttentionCut& cut, const Place& place);

/// Which rows go to whole warps, in one piece or several; all others are short.
struct AttentionSchedule {
  Buffer<RowPiece> pieces;
  EdgeOffset short_row = 0;
  std::int64_t num_slots = 0;
  std::uint32_t num_cut_rows = 0;
};

AttentionSchedule make_attention_schedule(const cuda::DeviceRows& rows,
                                          const DegreeStatistics& degrees, const AttentionCut& cut,
                                          const Place& place);

/// One sweep's rows of the matrix, and how they are shared out.
struct AttentionSide {
  std::shared_ptr<const cuda::DeviceRows> rows;
  AttentionSchedule schedule;

  AttentionSide() = default;
  AttentionSide(std::shared_ptr<const cuda::DeviceRows> matrix, const DegreeStatistics& degrees,
                const LaneShape& shape, const AttentionOptions& options);

  /// What any sweep over it has in common.
  RowsAttentionLaunch launch(const AttentionOptions& options, const AttentionInputs& inputs,
                             const WorkspaceView& workspace) const;
};

}  // namespace tessera::ops
