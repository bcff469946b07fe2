// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "graph/degrees.hpp"
#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/pairs/launch.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

/// By width of a head: registers allow fewer warps where it is large.
using ByWidth = std::array<double, pair_widths.size()>;

struct PairsCoefficients {
  double launch_us;
  ByWidth step_us;  ///< per step of 16 edges and head
  ByWidth row_us;   ///< per row and head
  double moved_bytes_per_us = streamed_bytes_per_us;
  double backward_launch_us;
  ByWidth backward;  ///< as many forward passes, but for the launch; none where rows go back

  void scale(DeviceRatio ratio) {
    for (double& us : step_us) us /= ratio.processors;
    for (double& us : row_us) us /= ratio.processors;
    moved_bytes_per_us *= ratio.memory;
  }
};

constexpr Fitted<PairsCoefficients> coefficients = {
    fitted_on_h200("2026-11-17", "one head of 64 features on seven graphs, two shapes on three"),
    {.launch_us = 11,
     .step_us = {2.55e-4, 3.95e-4, 8.9e-4},
     .row_us = {1.5e-4, 2.1e-4, 8.3e-4},
     .backward_launch_us = 18,
     .backward = {2.9, 3.2, 0}}};

/// Steps of all rows: the two that a warp takes together have as many as the longer one needs. Long
/// rows have warps of their own.
double num_steps(const DegreeStatistics& degrees) {
  constexpr int long_row = 256, row_edges = 8;
  double steps = 0;
  for (std::size_t first = 0; first < degrees.of_rows.size(); first += 2) {
    int longest = 0;
    for (std::size_t row = first; row < std::min(first + 2, degrees.of_rows.size()); ++row) {
      const int degree = degrees.of_rows[row];
      if (degree <= long_row) longest = std::max(longest, degree);
    }
    steps += (longest + row_edges - 1) / row_edges;
  }
  for (auto count = degrees.counts.rbegin(); count != degrees.counts.rend(); ++count) {
    if (count->degree <= long_row) break;
    steps += static_cast<double>(count->rows) * static_cast<double>(count->degree) / 16;
  }
  return steps;
}

}  // namespace

double predict_pairs_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const PairsCoefficients fit = coefficients.on(traits);
  const AttentionOptions& options = problem.options;
  const std::size_t width = *width_index(pair_widths, options);
  const PassSizes sizes = sizes_of(problem);
  const double steps = num_steps(*row_degrees(problem.graph));
  const double working = static_cast<double>(options.heads) *
                         (steps * fit.step_us[width] + sizes.targets * fit.row_us[width]);
  const double moving = 2 * sizes.vertices * sizes.row_bytes / fit.moved_bytes_per_us;
  return fit.launch_us + std::max(working, moving);
}

double predict_pairs_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const PairsCoefficients fit = coefficients.on(traits);
  return fit.backward_launch_us + fit.backward[*width_index(pair_widths, problem.options)] *
                                      (predict_pairs_attention_us(problem, traits) - fit.launch_us);
}

}  // namespace tessera::ops
