// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/sddmm/cuda/tall/launch.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

constexpr int longest_run_shift = 6;

double num_windows(const Graph& graph) {
  return std::ceil(static_cast<double>(graph.num_rows()) / dot_tile_height);
}

/// What a tile and a window cost a processor, and what edges cost the GPU, by the size of features.
struct Rates {
  double launch_us;
  double tile_us, tile_us_per_byte;
  double window_us, window_us_per_byte;
  double edge_us;
  double dense_edge_us;  ///< times how many edges a column has beyond 8
};

struct DotTileCoefficients {
  Rates half;
  Rates full;
  double short_rows;  ///< more work: short rows wait for each other
  double long_rows;   ///< and long ones leave room for fewer blocks

  DotTileCoefficients scaled(DeviceRatio ratio) const {
    DotTileCoefficients scaled = *this;
    for (Rates* const rates : {&scaled.half, &scaled.full}) {
      rates->edge_us /= ratio.processors;
      rates->dense_edge_us /= ratio.processors;
    }
    return scaled;
  }
};

constexpr std::array<Fitted<DotTileCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15",
                     "13 graphs at 16 to 256 features, with both ends from one matrix"),
      {.half = {9.4, 0.152, 0.00192, 0.001, 0.00072, 0.83e-6, 0.47e-6},
       .full = {10.5, 0.229, 0.00394, 0.178, 0.00088, 1.43e-6, 0.51e-6},
       .short_rows = 1.2,
       .long_rows = 1.25}}}};

}  // namespace

DotTileRuns share_dot_tiles(const Graph& graph, std::int64_t num_tiles, int workers) {
  DotTileRuns best;
  double least = 0;
  for (int shift = 0; shift <= longest_run_shift; ++shift) {
    const std::int64_t length = std::int64_t{1} << shift;
    const std::int64_t runs = (num_tiles + length - 1) / length;
    const std::int64_t of_one = (runs + workers - 1) / workers;
    // A tile, and the rows of U where a window or a run begins.
    const double starts =
        std::min(static_cast<double>(num_tiles), num_windows(graph) + static_cast<double>(runs));
    const double share = starts / static_cast<double>(std::max<std::int64_t>(1, num_tiles));
    const double cost = static_cast<double>(of_one * length) * (1 + share);
    if (shift > 0 && cost >= least) continue;
    least = cost;
    best = {shift, static_cast<int>(std::min<std::int64_t>(runs, workers))};
  }
  return best;
}

std::int64_t dot_tile_row_bytes(const SddmmProblem& problem) {
  return problem.features / std::max<std::int64_t>(1, problem.heads) *
         static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

double predict_dot_tiles_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const DotTileCoefficients fit = coefficients_for(coefficients, traits);
  const Rates& rates = bytes_per_element(problem.precision) == 2 ? fit.half : fit.full;
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, dot_tile_height, tiles::Side::forward);
  const double windows = num_windows(problem.graph);
  // The last tile of a window is half empty.
  const double tiles = sample.columns / dot_tile_columns + windows / 2;
  const double bytes = std::max(32.0, static_cast<double>(dot_tile_row_bytes(problem)));
  const double tile_us = rates.tile_us + rates.tile_us_per_byte * bytes;
  const double window_us = rates.window_us + rates.window_us_per_byte * bytes;
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const double columns = std::max(1.0, tiles * dot_tile_columns);
  const double edges_us =
      edges * (rates.edge_us + rates.dense_edge_us * std::max(0.0, edges / columns - 8));
  const double factor = bytes <= 64 ? fit.short_rows : bytes > 256 ? fit.long_rows : 1.0;
  const double work_us = (tiles * tile_us + windows * window_us) / traits.processors + edges_us;
  return rates.launch_us + static_cast<double>(problem.heads) * factor * work_us;
}

}  // namespace tessera::ops
