// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/cost.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct SoftmaxCoefficients {
  double launch_us;
  double moved_bytes_per_us;
  /// What a row and a step of a team's loop take, while others wait for theirs.
  double row_us;
  double step_us;
  double resident_lanes;  ///< of a processor
  double waiting_share;   ///< of waiting that moving does not hide

  SoftmaxCoefficients scaled(DeviceRatio ratio) const {
    SoftmaxCoefficients scaled = *this;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<SoftmaxCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15", "all sizes of teams on a few graphs, by eye"),
      {.launch_us = 3,
       .moved_bytes_per_us = 3.5e6,
       .row_us = 2,
       .step_us = 0.2,
       .resident_lanes = 1536,
       .waiting_share = 0.1}}}};

}  // namespace

std::int64_t padded_heads(const EdgeSoftmaxProblem& problem) {
  const auto heads = static_cast<std::uint64_t>(std::min<std::int64_t>(problem.options.heads, 32));
  return static_cast<std::int64_t>(std::bit_ceil(heads));
}

/// Numbers move at the bandwidth of memory, or at the pace at which teams wait for them.
double predict_softmax_us(const EdgeSoftmaxProblem& problem, int team, const DeviceTraits& traits) {
  const SoftmaxCoefficients fit = coefficients_for(coefficients, traits);
  const double resident_lanes = traits.processors * fit.resident_lanes;
  const Graph& graph = problem.graph;
  const auto edges = static_cast<double>(graph.num_edges());
  const auto rows = static_cast<double>(graph.num_rows());
  const double head_blocks = std::ceil(static_cast<double>(problem.options.heads) / 32);
  const double numbers = edges * static_cast<double>(problem.options.heads);
  const double mean_degree = rows > 0 ? edges / rows : 0;
  const double steps =
      rows * std::ceil(mean_degree * static_cast<double>(padded_heads(problem)) / team);
  const double waiting =
      (rows * fit.row_us + steps * fit.step_us) * team * head_blocks / resident_lanes;
  const double moving = 2 * numbers *
                        static_cast<double>(bytes_per_element(problem.options.precision)) /
                        fit.moved_bytes_per_us;
  return fit.launch_us + std::max(waiting, moving) + fit.waiting_share * waiting;
}

}  // namespace tessera::ops
