// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/fused/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/degrees.hpp"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct FusedCoefficients {
  double launch_us;           ///< with the weights brought to shared memory
  double moved_bytes_per_us;  ///< X, Y and Z once, from and to memory
  double window_us;           ///< 64 rows of a group of warps: beginning and end
  double kept_us;             ///< more, where sums are stored
  double chunk_us;            ///< 128 bytes of its rows
  double step_us;             ///< two edges of each row, for such a chunk
  double long_bytes_per_us;   ///< of rows summed beforehand

  FusedCoefficients scaled(DeviceRatio ratio) const {
    FusedCoefficients scaled = *this;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.long_bytes_per_us *= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<FusedCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16", "molecules, two unions and communities at 64 and 96 features"),
      {.launch_us = 7,
       .moved_bytes_per_us = 3.9e6,
       .window_us = 5,
       .kept_us = 2.5,
       .chunk_us = 1,
       .step_us = 1,
       .long_bytes_per_us = 5e6}}}};

/// What windows wait for.
struct RowSteps {
  double per_window =
      0;  ///< steps of two edges that the longest of sixteen rows takes, in the mean
  double long_edges = 0;  ///< of rows that are summed beforehand
};

RowSteps row_steps(const DegreeStatistics& degrees) {
  RowSteps found;
  const auto rows = static_cast<double>(degrees.num_rows);
  double below = 0;  // rows of fewer edges
  for (const DegreeCount& count : degrees.counts) {
    const auto of_degree = static_cast<double>(count.rows);
    if (count.degree > longest_update_row) {
      found.long_edges += of_degree * static_cast<double>(count.degree);
      continue;
    }
    // How likely the longest of sixteen has this many.
    const double share = std::pow((below + of_degree) / rows, 16) - std::pow(below / rows, 16);
    below += of_degree;
    found.per_window += share * std::max(1.0, std::ceil(static_cast<double>(count.degree) / 2));
  }
  return found;
}

}  // namespace

double predicted_fused_update_us(const AggregateUpdateProblem& problem,
                                 const DeviceTraits& traits) {
  const FusedCoefficients fit = coefficients_for(coefficients, traits);
  const AggregateUpdateOptions& options = problem.options;
  const auto bytes = static_cast<double>(bytes_per_element(options.precision));
  const auto targets = static_cast<double>(problem.num_targets());
  const double row_bytes = static_cast<double>(problem.gathered()) * bytes;
  const double written_bytes = static_cast<double>(problem.written()) * bytes;
  const double moved = static_cast<double>(problem.num_sources()) * row_bytes +
                       targets * (written_bytes + (problem.keeps_sums() ? row_bytes : 0));
  const RowSteps of_rows = row_steps(
      *(problem.is_forward() ? row_degrees(problem.graph) : column_degrees(problem.graph)));
  const double chunks = std::ceil(row_bytes / 128);
  const double windows = std::ceil(targets / 64);
  // Groups of warps that a GPU holds at once.
  const double at_once = traits.processors * (problem.written() <= 64 ? 4.0 : 3.0);
  const double window_us = fit.window_us + (problem.keeps_sums() ? fit.kept_us : 0) +
                           chunks * (fit.chunk_us + of_rows.per_window * fit.step_us) +
                           (options.root ? chunks * fit.chunk_us : 0);
  const double waiting = std::max(1.0, windows / at_once) * window_us;
  const double long_us = of_rows.long_edges == 0 ? 0
                                                 : fit.launch_us + of_rows.long_edges * row_bytes /
                                                                       fit.long_bytes_per_us;
  return fit.launch_us + long_us + std::max(waiting, moved / fit.moved_bytes_per_us);
}

}  // namespace tessera::ops
