// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_steps.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "graph/cut.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/fragment.hpp"
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
      (row < 8 ? pair.lower : pair.upper) =
          static_cast<std::uint32_t>(rows.first_edge_from(target, column));
    }
  });
  return places;
}

}  // namespace

std::vector<DotRun> cut_into_runs(const TiledGraph& tiled, int run_steps) {
  if (tiled.num_steps() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, fmt::format("{} steps of tiles", tiled.num_steps()),
                "tiles", "partition the graph");
  }
  std::vector<DotRun> runs;
  for (std::int64_t window = 0; window < tiled.num_windows(); ++window) {
    const EdgeOffset first = tiled.step_offsets[window];
    const EdgeOffset steps = tiled.step_offsets[window + 1] - first;
    const auto parts = EqualParts::of_at_most(steps, run_steps);
    for (EdgeOffset part = 0; part < parts.count(); ++part) {
      const EdgeOffset begin = parts.begin(part);
      const EdgeOffset end = parts.end(part);
      runs.push_back({static_cast<std::int32_t>(first + begin),
                      static_cast<std::uint32_t>(window << DotRun::step_bits | (end - begin))});
    }
  }
  return runs;
}

std::vector<std::int32_t> share_runs(std::span<const DotRun> runs, int num_blocks) {
  // To begin a run costs about as much as a step.
  const auto cost = [](const DotRun& run) { return std::int64_t{run.num_steps()} + 1; };
  std::int64_t total = 0;
  for (const DotRun& run : runs) total += cost(run);
  std::vector<std::int32_t> offsets;
  offsets.reserve(static_cast<std::size_t>(num_blocks) + 1);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    // A run belongs to the block whose share its middle lies in.
    const std::int64_t middle = 2 * before + cost(runs[i]);
    while (std::ssize(offsets) * 2 * total <= middle * num_blocks) {
      offsets.push_back(static_cast<std::int32_t>(i));
    }
    before += cost(runs[i]);
  }
  offsets.resize(static_cast<std::size_t>(num_blocks) + 1, static_cast<std::int32_t>(runs.size()));
  return offsets;
}

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
