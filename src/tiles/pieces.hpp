// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/tiles/tiled_graph.hpp"

/// Who computes which windows. Work is counted in steps, not windows: a window that would keep one
/// worker busy after all others are done is cut into pieces, whose sums are added in order later.
namespace tessera::tiles {

/// Some tiles of a window, in the form in which a GPU reads it: two loads of 16 bytes.
struct alignas(16) Piece {
  std::int32_t first_step = 0;
  std::int32_t first_tile = 0;
  std::int32_t num_steps = 0;
  VertexId first_row = 0;
  std::int32_t num_rows = 0;  ///< of the window, less than its height at the end of the graph
  std::int32_t slot = -1;     ///< where its sums go; -1: it is the whole window
  std::int32_t reserved[2] = {};
};
static_assert(sizeof(Piece) == 32);

/// A window of several pieces, whose sums stand in consecutive slots.
struct CutWindow {
  VertexId first_row = 0;
  std::int32_t num_rows = 0;
  std::int32_t first_slot = 0;
  std::int32_t num_slots = 0;
};

struct PieceSchedule {
  std::vector<Piece> pieces;                 ///< worker by worker
  std::vector<std::int32_t> worker_offsets;  ///< num_workers + 1
  std::vector<CutWindow> cut_windows;
  std::int32_t num_slots = 0;

  /// The window of each slot.
  std::vector<CutWindow> slot_windows() const;
  std::int64_t num_workers() const { return static_cast<std::int64_t>(worker_offsets.size()) - 1; }
};

struct PieceOptions {
  int workers = 1;
  /// Windows of up to this many steps stay whole: the sums of a piece cost traffic too.
  std::int64_t min_cut_steps = 32;
  /// One for each window: those with 0 are somebody else's. Empty: all windows are taken.
  std::span<const std::uint8_t> taken = {};
  /// No piece is longer, to a tile, however much there is to do.
  std::int64_t max_steps = std::int64_t{1} << 31;
};

/// The steps and tiles of the windows of a graph, however its edges are written down in them.
struct WindowSteps {
  VertexId num_rows = 0;
  int height = 0;
  int steps_per_tile = tile_columns / step_columns;
  std::span<const EdgeOffset> step_offsets;
  std::span<const EdgeOffset> tile_offsets;
};

/// Every window that is taken in at least one piece, empty windows too: their rows have to be set
/// to 0. Throws `unsupported` for more than 2^31 - 1 steps.
PieceSchedule make_pieces(const WindowSteps& windows, const PieceOptions& options);
PieceSchedule make_pieces(const TiledGraph& tiled, const PieceOptions& options);

/// As `make_pieces`, for kernels to which adding up pieces is cheap: any window of more than
/// `min_cut_steps` is cut where its worker would be busy longer than others, and goes on with
/// another, so that all are done at about the same time however few windows there are. There is no
/// longest piece. Where a worker's share is less than `min_cut_steps`, it is `make_pieces`.
///
///     worker     0             1             2             3
///                window 0 ...  0, 1 .......  1, 2 .......  2, 3, 4
PieceSchedule make_filled_pieces(const WindowSteps& windows, const PieceOptions& options);

}  // namespace tessera::tiles
