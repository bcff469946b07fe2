// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/pairs/cost.hpp"

#include <algorithm>
#include <array>

#include "graph/degrees.hpp"
#include "ops/attention/cuda/pairs/launch.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

/// By width of a head: registers allow fewer warps where it is large.
using ByWidth = std::array<double, pair_widths.size()>;

struct PairsCoefficients {
  double launch_us;
  ByWidth step_us;  ///< per step of 16 edges and head
  ByWidth row_us;   ///< per row and head
  double moved_bytes_per_us;
  double backward_launch_us;
  ByWidth backward;  ///< as many forward passes, but for the launch; none where rows go back
  // Where a warp takes four rows.
  ByWidth four_row_us;
  double four_backward_launch_us;
  ByWidth four_backward;

  PairsCoefficients scaled(DeviceRatio ratio) const {
    PairsCoefficients scaled = *this;
    for (double& us : scaled.step_us) us /= ratio.processors;
    for (double& us : scaled.row_us) us /= ratio.processors;
    for (double& us : scaled.four_row_us) us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<PairsCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "one head of 64 features on seven graphs, two shapes on three"),
      {.launch_us = 11,
       .step_us = {2.55e-4, 3.95e-4, 7.6e-4},
       .row_us = {1.5e-4, 2.1e-4, 4.7e-4},
       .moved_bytes_per_us = 4.2e6,
       .backward_launch_us = 18,
       .backward = {2.9, 3.2, 0},
       .four_row_us = {1.2e-4, 1.2e-4, 0},
       .four_backward_launch_us = 24,
       .four_backward = {2.7, 3.75, 0}}}}};

/// Steps of all rows: those that a warp takes together have as many as the longest needs. Long rows
/// have warps of their own.
double num_steps(const DegreeStatistics& degrees, std::size_t together) {
  constexpr std::int16_t long_row = 256;
  constexpr std::size_t step_edges = 16;
  const std::size_t row_edges = step_edges / together;
  double steps = 0;
  for (std::size_t first = 0; first < degrees.of_rows.size(); first += together) {
    std::size_t longest = 0;
    const std::size_t end = std::min(first + together, degrees.of_rows.size());
    for (std::size_t row = first; row < end; ++row) {
      const std::int16_t degree = degrees.of_rows[row];
      if (degree <= long_row) longest = std::max(longest, static_cast<std::size_t>(degree));
    }
    steps += static_cast<double>((longest + row_edges - 1) / row_edges);
  }
  for (auto count = degrees.counts.rbegin(); count != degrees.counts.rend(); ++count) {
    if (count->degree <= long_row) break;
    steps += static_cast<double>(count->rows) * static_cast<double>(count->degree) / 16;
  }
  return steps;
}

}  // namespace

std::optional<std::size_t> pair_width_index(const AttentionOptions& options) {
  const auto at =
      std::find(pair_widths.begin(), pair_widths.end(), options.features / options.heads);
  if (at == pair_widths.end()) return std::nullopt;
  return static_cast<std::size_t>(at - pair_widths.begin());
}

int rows_of_warp(const AttentionProblem& problem) {
  const bool short_rows = problem.graph.num_edges() < EdgeOffset{6} * problem.graph.num_rows();
  const int width = pair_widths[*pair_width_index(problem.options)];
  return short_rows && may_take_four_rows(width) ? 4 : 2;
}

double predict_pairs_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const PairsCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const std::size_t width = *pair_width_index(options);
  const auto rows = static_cast<double>(problem.graph.num_rows());
  const auto cols = static_cast<double>(problem.graph.num_cols());
  const double steps =
      num_steps(*row_degrees(problem.graph), static_cast<std::size_t>(rows_of_warp(problem)));
  const ByWidth& row_us = rows_of_warp(problem) == 4 ? fit.four_row_us : fit.row_us;
  const double working =
      static_cast<double>(options.heads) * (steps * fit.step_us[width] + rows * row_us[width]);
  const double row_bytes = static_cast<double>(options.features) *
                           static_cast<double>(bytes_per_element(options.precision));
  const double moving = (2 * rows + 2 * cols) * row_bytes / fit.moved_bytes_per_us;
  return fit.launch_us + std::max(working, moving);
}

double predict_pairs_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const PairsCoefficients fit = coefficients_for(coefficients, traits);
  const bool four = rows_of_warp(problem) == 4;
  const ByWidth& passes = four ? fit.four_backward : fit.backward;
  return (four ? fit.four_backward_launch_us : fit.backward_launch_us) +
         passes[*pair_width_index(problem.options)] *
             (predict_pairs_attention_us(problem, traits) - fit.launch_us);
}

}  // namespace tessera::ops
