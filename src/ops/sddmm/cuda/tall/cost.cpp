// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/cost.hpp"

#include <algorithm>
#include <cmath>

#include "ops/plan/cost_fits.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/sddmm/cuda/tall/launch.hpp"

namespace tessera::ops {
namespace {

constexpr int longest_run_shift = 6;

/// What a tile and a window cost a processor, and what edges cost the GPU, by the size of features.
struct Rates {
  double launch_us, launch_us_per_byte;
  double tile_us, tile_us_per_byte;
  double window_us, window_us_per_byte;
  double edge_us;
  double power;  ///< of edges beside tiles: how much of what happens at the same time adds up
};

struct TallDotCoefficients {
  Rates half;
  Rates full;

  void scale(DeviceRatio ratio) {
    half.edge_us /= ratio.processors;
    full.edge_us /= ratio.processors;
  }
};

constexpr Fitted<TallDotCoefficients> coefficients = {
    fitted_on_h200(
        "2026-11-15",
        "37 graphs of 34 to 1.7 M vertices, ten of them generated, at 16 to 256 features; 16 bits "
        "on 2026-11-17, 30 graphs of up to 66 M edges, most of them at 128"),
    {.half = {9.199, 0.001773, 0.05663, 0.001691, 0.02901, 0.001957, 9.609e-6, 3.185},
     .full = {9.356, 0.005676, 0.1313, 0.004165, 0.1389, 0.001256, 5.881e-6, 1}}};

}  // namespace

TallDotRuns share_tall_dots(const Graph& graph, std::int64_t num_tiles, int workers) {
  const double windows = std::ceil(static_cast<double>(graph.num_rows()) / tiles::dot_tile_height);
  TallDotRuns best;
  double least = 0;
  for (int shift = 0; shift <= longest_run_shift; ++shift) {
    const std::int64_t length = std::int64_t{1} << shift;
    const std::int64_t runs = (num_tiles + length - 1) / length;
    const std::int64_t of_one = (runs + workers - 1) / workers;
    // A tile, and the rows of U where a window or a run begins.
    const double starts =
        std::min(static_cast<double>(num_tiles), windows + static_cast<double>(runs));
    const double share = starts / static_cast<double>(std::max<std::int64_t>(1, num_tiles));
    const double cost = static_cast<double>(of_one * length) * (1 + share);
    if (shift > 0 && cost >= least) continue;
    least = cost;
    best = {shift, static_cast<int>(std::min<std::int64_t>(runs, workers))};
  }
  return best;
}

double predict_tall_dots_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const TallDotCoefficients fit = coefficients.on(traits);
  const Rates& rates = bytes_per_element(problem.precision) == 2 ? fit.half : fit.full;
  const auto [windows, tiles] =
      SampledSteps(problem.graph, tiles::dot_tile_height, tiles::tile_columns);
  const double bytes = std::max(32.0, static_cast<double>(head_bytes(problem)));
  const double tile_us = rates.tile_us + rates.tile_us_per_byte * bytes;
  const double window_us = rates.window_us + rates.window_us_per_byte * bytes;
  const double edges_us = static_cast<double>(problem.graph.num_edges()) * rates.edge_us;
  const double work_us = (tiles * tile_us + windows * window_us) / traits.processors;
  const double heads_us =
      static_cast<double>(problem.heads) * side_by_side({work_us, edges_us}, rates.power);
  return fitted_us(cost_fits::sddmm_tiles_64,
                   rates.launch_us + rates.launch_us_per_byte * bytes + heads_us);
}

}  // namespace tessera::ops
