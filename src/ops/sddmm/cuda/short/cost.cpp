// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/cost.hpp"

#include <algorithm>

#include "ops/plan/cost_fits.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/sddmm/cuda/short/launch.hpp"

namespace tessera::ops {
namespace {

/// What beginning costs, what a step and a run cost a processor, and what edges and gathered rows
/// cost the GPU. Bytes are those of a row.
struct Rates {
  double start_us, start_us_per_byte;
  double step_us, step_us_per_byte, run_us;
  double edge_us;
  double gathered_bytes_per_us;
  double power;  ///< how much of what happens at the same time adds up
};

struct ShortDotCoefficients {
  /// Rows of 16 bits that the second-level cache does not keep take longer by that; those of fp32
  /// move beside others.
  double moved_bytes_per_us = streamed_bytes_per_us;
  double cached_bytes = cached_bytes_kept;
  Rates half, full;
  Rates half_direct, full_direct;

  void scale(DeviceRatio ratio) {
    moved_bytes_per_us *= ratio.memory;
    cached_bytes *= ratio.l2;
    for (Rates* const rates : {&half, &full, &half_direct, &full_direct}) {
      rates->edge_us /= ratio.processors;
      rates->gathered_bytes_per_us *= ratio.processors;
    }
  }
};

constexpr Fitted<ShortDotCoefficients> coefficients = {
    fitted_on_h200("2026-11-15",
                   "37 graphs of 34 to 1.7 M vertices, ten of them generated, at 16 to 256 "
                   "features; 16 bits on 2026-11-17, 30 graphs of up to 66 M edges, most of them "
                   "at 128; fp32 on 2026-11-18, 40 of them at 64 to 256"),
    {.half = {9.367, 0.001701, 0.01843, 3.655e-05, 0.04457, 1.972e-6, 8.419e6, 2.168},
     .full = {8.1, 0.003, 0.0188, 2e-04, 0.0563, 2.88e-6, 7.32e6, 1.7},
     .half_direct = {8.828, 0.002232, 0.001721, 4.381e-05, 0.0445, 4.5e-6, 9.1e6, 2.781},
     .full_direct = {8.1, 0.003, 0.0271, 0, 0.0591, 1.69e-6, 5.91e6, 1.88}}};

SampledSteps steps_of(const Graph& graph) {
  return {graph, tiles::dot_step_rows, tiles::step_columns};
}

}  // namespace

int dot_run_steps(const SddmmProblem& problem, const DeviceTraits& traits) {
  const double warps = traits.processors * 16;
  constexpr double runs_per_warp = 6;
  return static_cast<int>(std::clamp<double>(
      steps_of(problem.graph).steps / (warps * runs_per_warp), 1, most_run_steps));
}

double predict_short_dots_us(const SddmmProblem& problem, bool direct, const DeviceTraits& traits) {
  const ShortDotCoefficients fit = coefficients.on(traits);
  const PassSizes sizes = sizes_of(problem);
  const Rates& rates = sizes.half() ? direct ? fit.half_direct : fit.half
                       : direct     ? fit.full_direct
                                    : fit.full;
  const Graph& graph = problem.graph;
  const auto heads = static_cast<double>(problem.heads);
  const auto bytes = static_cast<double>(head_bytes(problem));
  const auto [windows, steps] = steps_of(graph);
  // The last run of a window is half full.
  const double runs = steps / dot_run_steps(problem, traits) + windows / 2;
  const double work_us =
      heads * (steps * (rates.step_us + rates.step_us_per_byte * bytes) + runs * rates.run_us) /
      traits.processors;
  double gather_us = heads * bytes * steps * tiles::step_columns / rates.gathered_bytes_per_us;
  double moved_rows = sizes.vertices;
  if (sizes.half()) {
    const double cached_rows = fit.cached_bytes / std::max(1.0, bytes);
    gather_us += heads * bytes * sizes.edges *
                 gather_shares(graph, tiles::Side::forward, 0, cached_rows).missed /
                 fit.moved_bytes_per_us;
  } else {
    const double cached_rows = fit.cached_bytes / std::max(1.0, heads * bytes);
    moved_rows += sizes.edges * missed_beside_targets(graph, cached_rows);
  }
  const double move_us = heads * moved_rows * bytes / fit.moved_bytes_per_us;
  return fitted_us(direct ? cost_fits::sddmm_short_16_direct : cost_fits::sddmm_short_16,
                   rates.start_us + rates.start_us_per_byte * bytes +
                       side_by_side({work_us, gather_us, move_us}, rates.power) +
                       heads * sizes.edges * rates.edge_us);
}

}  // namespace tessera::ops
