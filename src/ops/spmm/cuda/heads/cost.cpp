// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/heads/cost.hpp"

#include <array>

#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct HeadsCoefficients {
  double launch_us;
  double gathered_bytes_per_us;

  HeadsCoefficients scaled(DeviceRatio ratio) const {
    return {launch_us, gathered_bytes_per_us * ratio.processors};
  }
};

constexpr std::array<Fitted<HeadsCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15", "attention with 4 and 8 heads on a few graphs, by eye"),
      {.launch_us = 3, .gathered_bytes_per_us = 6e6}}}};

}  // namespace

double predict_heads_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  const HeadsCoefficients fit = coefficients_for(coefficients, traits);
  return fit.launch_us + static_cast<double>(problem.graph.num_edges()) *
                             static_cast<double>(problem.features + problem.heads) *
                             static_cast<double>(bytes_per_element(problem.precision)) /
                             fit.gathered_bytes_per_us;
}

}  // namespace tessera::ops
