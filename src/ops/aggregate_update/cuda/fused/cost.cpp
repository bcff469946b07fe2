// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cost.hpp"

#include <algorithm>
#include <cmath>

#include "graph/degrees.hpp"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"
#include "ops/cuda/whole_units.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/counts.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {
namespace {

/// Features of Y and Z in a microsecond, where their rows fill no units of 16 bytes.
struct FusedCoefficients {
  double single_features_per_us;

  void scale(DeviceRatio ratio) { single_features_per_us *= ratio.memory; }
};

constexpr Fitted<FusedCoefficients> coefficients = {
    fitted_on_h200("2026-11-18", "molecules-size at 74"), {.single_features_per_us = 3.8e5}};

/// Summing rows beforehand takes as long as so many launches, whatever there is to sum.
constexpr int launches_of_long_rows = 14;
/// Rows of fewer bytes are gathered no faster.
constexpr double least_long_bytes = 256;

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
  const auto element_bytes = static_cast<int>(sizes.element_bytes);
  const int groups = update_groups(static_cast<int>(problem.written()));
  const RowSteps of_rows = row_steps(
      *(problem.is_forward() ? row_degrees(problem.graph) : column_degrees(problem.graph)), groups,
      update_edges_at_once(element_bytes));
  const double chunks = std::ceil(sizes.row_bytes / (64.0 * update_chunk_units(element_bytes)));
  // A step of 16-bit features has more of them to widen and add.
  const double steps = turns_of(std::ceil(sizes.targets / update_window_rows), groups, traits) *
                       chunks * (of_rows.per_window + (options.root ? 1 : 0)) *
                       (sizes.half() ? 1.7 : 1);
  // Rows of X that others of 64 targets ask for, too, take a quarter of the time.
  const double near = gather_shares(problem.graph, tile_side(problem.pass), 0, 0).near;
  const double waited = (1.35 - near) * steps;
  const double long_bytes = of_rows.long_edges * std::max(sizes.row_bytes, least_long_bytes);
  const auto single = [&](std::int64_t features) {
    const bool fills = fills_units(features, options.precision);
    return fills ? 0 : sizes.targets * static_cast<double>(features) / fit.single_features_per_us;
  };
  const double kept_us =
      problem.keeps_sums()
          ? single(problem.gathered()) + moved_us(sizes.targets * sizes.row_bytes, traits)
          : 0;
  return single(problem.written()) + kept_us +
         counted_us(cost_fits::aggregate_update_fused,
                    2 + (of_rows.long_edges > 0 ? launches_of_long_rows : 0),
                    {waited * step_us, problem.graph.is_weighted() ? steps * step_us : 0,
                     gathered_us(long_bytes, traits)});
}

}  // namespace tessera::ops
