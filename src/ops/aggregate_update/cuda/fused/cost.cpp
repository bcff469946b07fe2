// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cost.hpp"

#include <algorithm>
#include <cmath>

#include "graph/degrees.hpp"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"
#include "ops/cuda/whole_units.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {
namespace {

/// What 64 rows take a group of warps, by the size of features.
struct Rates {
  double window_us;  ///< beginning and end
  double kept_us;    ///< more, where sums are stored
  double step_us;    ///< what lanes take at once of their rows and edges
};

struct FusedCoefficients {
  double launch_us;               ///< with the weights brought to shared memory
  double moved_bytes_per_us;      ///< X, Y and Z once, from and to memory
  double long_bytes_per_us;       ///< of rows summed beforehand
  double long_least_bytes;        ///< rows of fewer are gathered no faster
  double single_features_per_us;  ///< of Y and Z, where their rows fill no units of 16 bytes
  /// How much longer a step takes where no other of 64 targets asks for its rows of X.
  double far_step;
  Rates full;
  Rates half;

  void scale(DeviceRatio ratio) {
    moved_bytes_per_us *= ratio.memory;
    long_bytes_per_us *= ratio.processors;
    single_features_per_us *= ratio.memory;
  }
};

constexpr Fitted<FusedCoefficients> coefficients = {
    fitted_on_h200("2026-11-17",
                   "molecules, communities and DD at 64 and 96 features, ten graphs at 64; rows "
                   "that fill no units on 2026-11-18, molecules-size at 74"),
    {.launch_us = 7,
     .moved_bytes_per_us = 3.9e6,
     .long_bytes_per_us = 5e6,
     .long_least_bytes = 256,
     .single_features_per_us = 3.8e5,
     .far_step = 0.9,
     .full = {5.3, 2.73, 0.7},
     .half = {4.32, 0.71, 1.05}}};

/// What windows wait for.
struct RowSteps {
  double per_window = 0;  ///< steps of the longest of its rows, in the mean
  double long_edges = 0;  ///< of rows that are summed beforehand
};

/// Of so many windows, sorted together (row_list.cu), each waits for the first of its rows.
RowSteps row_steps(const DegreeStatistics& degrees, int sorted_windows, int edges_at_once) {
  RowSteps found;
  double short_rows = 0;
  for (const DegreeCount& count : degrees.counts) {
    const auto rows = static_cast<double>(count.rows);
    if (count.degree > longest_update_row) {
      found.long_edges += rows * static_cast<double>(count.degree);
    } else {
      short_rows += rows;
    }
  }
  for (int window = 0; window < sorted_windows; ++window) {
    const double before = (window * update_window_rows + 0.5) / update_window_rows / sorted_windows;
    double below = 0;  // rows of at most so many edges
    double steps = 1;  // as many as long rows take, whose sums are there
    for (const DegreeCount& count : degrees.counts) {
      if (count.degree > longest_update_row) break;
      below += static_cast<double>(count.rows);
      if (below < (1 - before) * short_rows) continue;
      steps = std::max(steps, std::ceil(static_cast<double>(count.degree) / edges_at_once));
      break;
    }
    found.per_window += steps / sorted_windows;
  }
  return found;
}

}  // namespace

double predicted_fused_update_us(const AggregateUpdateProblem& problem,
                                 const DeviceTraits& traits) {
  const FusedCoefficients fit = coefficients.on(traits);
  const AggregateUpdateOptions& options = problem.options;
  const PassSizes sizes = sizes_of(problem);
  const double kept_bytes = problem.keeps_sums() ? sizes.row_bytes : 0;
  const double written_bytes = static_cast<double>(problem.written()) * sizes.element_bytes;
  const double moved =
      sizes.sources * sizes.row_bytes + sizes.targets * (written_bytes + kept_bytes);
  const auto element_bytes = static_cast<int>(sizes.element_bytes);
  const int groups = update_groups(static_cast<int>(problem.written()));
  const RowSteps of_rows = row_steps(
      *(problem.is_forward() ? row_degrees(problem.graph) : column_degrees(problem.graph)), groups,
      update_edges_at_once(element_bytes));
  const double chunks = std::ceil(sizes.row_bytes / (64.0 * update_chunk_units(element_bytes)));
  const double windows = std::ceil(sizes.targets / 64);
  // Groups of warps that a GPU holds at once.
  const double at_once = static_cast<double>(traits.processors) * groups;
  const Rates& rates = sizes.half() ? fit.half : fit.full;
  const double near = gather_shares(problem.graph, tile_side(problem.pass), 0, 0).near;
  const double step_us = rates.step_us * (1 + fit.far_step * (1 - near));
  const double window_us = rates.window_us + (problem.keeps_sums() ? rates.kept_us : 0) +
                           chunks * (of_rows.per_window + (options.root ? 1 : 0)) * step_us;
  const double waiting = std::max(1.0, windows / at_once) * window_us;
  const double long_row_bytes = std::max(sizes.row_bytes, fit.long_least_bytes);
  const double long_us =
      of_rows.long_edges == 0
          ? 0
          : fit.launch_us + of_rows.long_edges * long_row_bytes / fit.long_bytes_per_us;
  const auto single = [&](std::int64_t features) {
    const bool fills = fills_units(features, options.precision);
    return fills ? 0 : sizes.targets * static_cast<double>(features) / fit.single_features_per_us;
  };
  const double single_us =
      single(problem.written()) + (problem.keeps_sums() ? single(problem.gathered()) : 0);
  return fitted_us(
      cost_fits::aggregate_update_fused,
      fit.launch_us + long_us + single_us + std::max(waiting, moved / fit.moved_bytes_per_us));
}

}  // namespace tessera::ops
