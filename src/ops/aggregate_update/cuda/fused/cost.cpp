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
  double gathered_bytes_per_us;
  double step_us;          ///< of a window: two edges of each row, for 128 bytes of it
  double window_us;        ///< its beginning and end
  double products_per_us;  ///< multiplications and additions of planes
  double long_bytes_per_us;
  double power;  ///< the longest of them decides, and a little of the others

  FusedCoefficients scaled(DeviceRatio ratio) const {
    FusedCoefficients scaled = *this;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.gathered_bytes_per_us *= ratio.processors;
    scaled.products_per_us *= ratio.processors;
    scaled.long_bytes_per_us *= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<FusedCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16", "an estimate from what the GPU's units can do"),
      {.launch_us = 7,
       .moved_bytes_per_us = 3.9e6,
       .gathered_bytes_per_us = 8e6,
       .step_us = 0.8,
       .window_us = 1.2,
       .products_per_us = 500e6,
       .long_bytes_per_us = 5e6,
       .power = 2}}}};

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
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const double row_bytes = static_cast<double>(problem.gathered()) * bytes;
  const double written_bytes = static_cast<double>(problem.written()) * bytes;
  const double moved = static_cast<double>(problem.num_sources()) * row_bytes +
                       targets * (written_bytes + (problem.keeps_sums() ? row_bytes : 0));
  const RowSteps of_rows = row_steps(
      *(problem.is_forward() ? row_degrees(problem.graph) : column_degrees(problem.graph)));
  const double chunks = std::ceil(row_bytes / 128) * (options.root ? 1.3 : 1);
  const double steps = chunks * of_rows.per_window;
  const double windows = std::ceil(targets / 64);
  const double at_once = traits.processors * (problem.written() <= 64 ? 4.0 : 3.0);
  const double waiting = std::ceil(windows / at_once) * (fit.window_us + steps * fit.step_us);
  const double planes = bytes == 2 ? 2 : 6;
  const double products = 2 * planes * windows * 64 * static_cast<double>(problem.gathered()) *
                          static_cast<double>((problem.written() + 31) / 32 * 32) *
                          (options.root ? 2 : 1);
  const auto powered = [&](double us) { return std::pow(us, fit.power); };
  const double sum = powered(moved / fit.moved_bytes_per_us) +
                     powered(edges * row_bytes / fit.gathered_bytes_per_us) + powered(waiting) +
                     powered(products / fit.products_per_us);
  const double long_us = of_rows.long_edges == 0 ? 0
                                                 : fit.launch_us + of_rows.long_edges * row_bytes /
                                                                       fit.long_bytes_per_us;
  return fit.launch_us + long_us + std::pow(sum, 1 / fit.power);
}

}  // namespace tessera::ops
