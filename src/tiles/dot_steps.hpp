// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/shared_array.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// Edges of short windows for dot products: their bits row by row, so that an edge's place is the
/// number of bits before it, and where each row's edges begin. docs/design/tile_format.md draws it.
namespace tessera::tiles {

/// Rows of the windows whose edges are written down so.
inline constexpr int dot_step_rows = 16;

/// Steps of a window that one warp takes, one after the other, to compute dot products.
struct alignas(8) DotRun {
  std::int32_t first_step = 0;
  std::uint32_t window_and_steps = 0;  ///< the steps in the low bits

  static constexpr int step_bits = 3;
  static constexpr std::uint32_t step_mask = (1u << step_bits) - 1;

  constexpr std::int64_t window() const { return window_and_steps >> step_bits; }
  constexpr int num_steps() const { return static_cast<int>(window_and_steps & step_mask); }

  friend bool operator==(const DotRun&, const DotRun&) = default;
};

/// Every window in as few runs of up to `run_steps` as it takes, of about equal length. Throws
/// `unsupported` for more than 2^31 - 1 steps.
std::vector<DotRun> cut_into_runs(const TiledGraph& tiled, int run_steps);

/// Where the runs of each block begin, and at last where all end: neighbouring runs, about as much
/// to do for each.
std::vector<std::int32_t> share_runs(std::span<const DotRun> runs, int num_blocks);

/// Where the edges of rows r and r + 8 begin in a run, counted in the order of the side's rows.
struct alignas(8) DotPlaces {
  std::uint32_t lower = 0;
  std::uint32_t upper = 0;

  friend bool operator==(const DotPlaces&, const DotPlaces&) = default;
};

struct DotSteps {
  /// 8 per step: the columns of row r in the low half, those of row r + 8 in the high one.
  SharedArray<std::uint32_t> masks;
  SharedArray<DotRun> runs;       ///< and one more without steps
  SharedArray<DotPlaces> places;  ///< 8 per run; 0 for rows beyond the last

  /// The same bytes.
  friend bool operator==(const DotSteps&, const DotSteps&) = default;
};

/// Rows r and r + 8 stand side by side: where the numbers of a row of a window are.
constexpr int dot_row_place(int row) { return row % 8 * 2 + row / 8; }

/// `tiled` is that side of the graph in windows of `dot_step_rows` rows; runs have up to
/// `run_steps` steps. The same bytes for any number of threads.
DotSteps make_dot_steps(const Graph& graph, const TiledGraph& tiled, int run_steps, Side side);

/// The same bytes, made in a place and brought back.
DotSteps make_dot_steps(const Graph& graph, const TiledGraph& tiled, int run_steps, Side side,
                        const Place& place);

}  // namespace tessera::tiles
