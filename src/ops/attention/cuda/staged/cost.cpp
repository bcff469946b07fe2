// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/staged/cost.hpp"

#include <array>

#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct StagedCoefficients {
  double copy_launch_us;
  double copied_bytes_per_us;
  double dropped_bytes_per_us;
  double stage_us;       ///< per stage, beside what its op takes
  double one_head;       ///< times what ops take alone: what one leaves in caches is not its own
  double several_heads;  ///< the same for more than one head

  StagedCoefficients scaled(DeviceRatio ratio) const {
    return {copy_launch_us,
            copied_bytes_per_us * ratio.memory,
            dropped_bytes_per_us * ratio.memory,
            stage_us,
            one_head,
            several_heads};
  }
};

constexpr std::array<Fitted<StagedCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16", "copies and dropout of a few sizes, stages of 22 cases"),
      {.copy_launch_us = 3,
       .copied_bytes_per_us = 1.3e6,
       .dropped_bytes_per_us = 3.5e6,
       .stage_us = 5,
       .one_head = 1.2,
       .several_heads = 2.1}}}};

}  // namespace

double edge_numbers(const AttentionProblem& problem) {
  return static_cast<double>(problem.graph.num_edges()) *
         static_cast<double>(problem.options.heads);
}

double predict_dropping_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  if (problem.options.dropout <= 0) return 0;
  return 2 * edge_numbers(problem) * sizeof(float) /
         coefficients_for(coefficients, traits).dropped_bytes_per_us;
}

double predict_stages_us(const AttentionProblem& problem, const DeviceTraits& traits, double ops_us,
                         int num_stages) {
  const StagedCoefficients fit = coefficients_for(coefficients, traits);
  const double factor = problem.options.heads == 1 ? fit.one_head : fit.several_heads;
  return num_stages * fit.stage_us + factor * ops_us;
}

double predict_widening_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  constexpr double bytes_of_element = 2 + 4;
  constexpr double copies = 4;
  const StagedCoefficients fit = coefficients_for(coefficients, traits);
  const double rows = 2.0 * (static_cast<double>(problem.graph.num_rows()) +
                             static_cast<double>(problem.graph.num_cols()));
  return copies * fit.copy_launch_us + rows * static_cast<double>(problem.options.features) *
                                           bytes_of_element / fit.copied_bytes_per_us;
}

}  // namespace tessera::ops
