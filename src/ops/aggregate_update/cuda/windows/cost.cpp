// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/cost.hpp"

#include <cstdint>

#include "ops/aggregate_update/cost.hpp"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/spmm/parts.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

/// What comes to the windows: the weights, which every block brings before it begins, products with
/// them, and the sums where they are stored.
struct WindowCoefficients {
  double weight_us_per_byte;
  /// Multiplications and additions, for up to 64 gathered columns and for more.
  double narrow_per_us, wide_per_us;
  double kept_bytes_per_us;
  double sums_on_warps;  ///< how many times as long sums take on mma.sync

  void scale(DeviceRatio ratio) {
    narrow_per_us *= ratio.processors;
    wide_per_us *= ratio.processors;
    kept_bytes_per_us *= ratio.memory;
  }
};

constexpr Fitted<WindowCoefficients> coefficients = {
    fitted_on_h200("2026-11-18", "molecules, two unions and communities at 64 and 96 features"),
    {.weight_us_per_byte = 0.45e-3,
     .narrow_per_us = 850e6,
     .wide_per_us = 350e6,
     .kept_bytes_per_us = 5.3e6,
     .sums_on_warps = 1.32}};

}  // namespace

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
  const WindowCoefficients fit = coefficients.on(traits);
  const AggregateUpdateOptions& options = problem.options;
  const PassSizes sizes = sizes_of(problem);
  const double summed = sizes.targets * sizes.features;
  const double products = options.root ? 2 : 1;
  const auto weights = static_cast<double>(
      update_weight_bytes(Precision::bf16, problem.gathered(), problem.written(), options.root));
  const double per_us = problem.gathered() > 64 ? fit.wide_per_us : fit.narrow_per_us;
  SpmmProblem sums = window_sums(problem);
  sums.epilogue.residual = options.self && !rows_may_be_columns(problem);
  const double sums_us = predict_tall_us(sums, policy, traits);
  const double counted_us =
      (policy.warps ? fit.sums_on_warps : 1) * sums_us + fit.weight_us_per_byte * weights +
      2 * products * summed * static_cast<double>(problem.written()) / per_us +
      (problem.keeps_sums() ? 2 * summed / fit.kept_bytes_per_us : 0);
  return fitted_us(
      policy.warps ? cost_fits::aggregate_update_windows_mma : cost_fits::aggregate_update_windows,
      counted_us);
}

}  // namespace tessera::ops
