// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/cost.hpp"

#include <cstdint>

#include "ops/aggregate_update/cost.hpp"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/counts.hpp"
#include "ops/spmm/parts.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {

SpmmProblem window_sums(const AggregateUpdateProblem& problem) {
  SpmmProblem sums = sums_problem(problem, problem.gathered());
  sums.epilogue = {};
  return sums;
}

bool rows_may_be_columns(const AggregateUpdateProblem& problem) {
  const AggregateUpdateOptions& options = problem.options;
  if (!options.self || options.self_scale || options.reduction != Reduction::sum ||
      problem.graph.is_weighted()) {
    return false;
  }
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, window_update_height, tile_side(problem.pass));
  return sample.columns >= 0.5 * static_cast<double>(problem.num_targets());
}

double predicted_window_update_us(const AggregateUpdateProblem& problem, const TallPolicy& policy,
                                  const DeviceTraits& traits) {
  const AggregateUpdateOptions& options = problem.options;
  const PassSizes sizes = sizes_of(problem);
  const double summed = sizes.targets * sizes.features;
  const double products = options.root ? 2 : 1;
  SpmmProblem sums = window_sums(problem);
  sums.epilogue.residual = options.self && !rows_may_be_columns(problem);
  const double sums_us = predict_tall_us(sums, policy, traits);
  const double kept_us = problem.keeps_sums() ? moved_us(2 * summed, traits) : 0;
  return kept_us +
         counted_us(
             policy.warps ? cost_fits::aggregate_update_windows_mma
                          : cost_fits::aggregate_update_windows,
             2,
             {sums_us, multiplied_us(2 * products * summed * static_cast<double>(problem.written()),
                                     traits)});
}

}  // namespace tessera::ops
