// SPDX-License-Identifier: Apache-2.0
#include "ops/messages/cuda/rows/cost.hpp"

#include "ops/plan/cost_formula.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

struct MessagesCoefficients {
  double launch_us;
  double memory_bytes_per_us = streamed_bytes_per_us;

  void scale(DeviceRatio ratio) { memory_bytes_per_us *= ratio.memory; }
};

constexpr Fitted<MessagesCoefficients> coefficients = {
    fitted_on_h200("2026-11-19", "what memory gives other kernels; no run of this one"),
    {.launch_us = 3}};

}  // namespace

/// Features of edges come from memory once, and those of sources once for every edge.
double predict_messages_us(const MessagesProblem& problem, const DeviceTraits& traits) {
  const MessagesCoefficients fit = coefficients.on(traits);
  const PassSizes sizes(problem.graph, tiles::Side::forward, problem.options.features,
                        problem.options.precision);
  return fit.launch_us +
         (2 * sizes.edges + sizes.targets) * sizes.row_bytes / fit.memory_bytes_per_us;
}

}  // namespace tessera::ops
