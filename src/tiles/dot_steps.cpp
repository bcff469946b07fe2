// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_steps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tiles/row_bits.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

constexpr int steps_per_tile = tile_columns / step_columns;

Buffer<std::uint32_t> masks_of(const TiledGraph& tiled) {
  Buffer<std::uint32_t> masks(tiled.num_steps() * dot_step_rows / 2, 0u);
  parallel_for(tiled.num_windows(), 64, [&](std::int64_t window) {
    const EdgeOffset first = tiled.step_offsets[window];
    for (EdgeOffset step = 0; step < tiled.step_offsets[window + 1] - first; ++step) {
      const EdgeOffset tile = tiled.tile_offsets[window] + step / steps_per_tile;
      const auto column = static_cast<int>(step % steps_per_tile) * step_columns;
      for (int row = 0; row < dot_step_rows; ++row) {
        const int place = dot_row_place(row);
        masks[(first + step) * (dot_step_rows / 2) + place / 2] |=
            row_bits(tiled.words.data() + tile * tiled.words_per_tile(), dot_step_rows, row, column,
                     step_columns)
            << (16 * (place % 2));
      }
    }
  });
  return masks;
}

/// The number of a row's first edge that is not left of a column.
std::uint32_t first_edge_from(const SideRows& rows, std::int64_t row, VertexId column) {
  const auto begin = rows.indices.begin() + rows.offsets[static_cast<std::size_t>(row)];
  const auto end = rows.indices.begin() + rows.offsets[static_cast<std::size_t>(row) + 1];
  return static_cast<std::uint32_t>(std::lower_bound(begin, end, column) - rows.indices.begin());
}

Buffer<DotPlaces> places_of(const SideRows& rows, const TiledGraph& tiled,
                            const std::vector<DotRun>& runs) {
  // The last has no steps.
  Buffer<DotPlaces> places(std::ssize(runs) * (dot_step_rows / 2), DotPlaces{});
  parallel_for(std::ssize(runs) - 1, 64, [&](std::int64_t i) {
    const DotRun& run = runs[static_cast<std::size_t>(i)];
    const VertexId column = tiled.columns[std::int64_t{run.first_step} * step_columns];
    for (int row = 0; row < dot_step_rows; ++row) {
      const std::int64_t target = run.window() * dot_step_rows + row;
      if (target >= rows.num_rows) return;
      DotPlaces& pair = places[i * (dot_step_rows / 2) + row % 8];
      (row < 8 ? pair.lower : pair.upper) = first_edge_from(rows, target, column);
    }
  });
  return places;
}

}  // namespace

DotSteps make_dot_steps(const Graph& graph, const TiledGraph& tiled, int run_steps, Side side) {
  std::vector<DotRun> runs = cut_into_runs(tiled, run_steps);
  runs.push_back({});
  DotSteps made;
  made.masks = masks_of(tiled);
  made.places = places_of(rows_of(graph, side), tiled, runs);
  made.runs = std::move(runs);
  return made;
}

}  // namespace tessera::tiles
