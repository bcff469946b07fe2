// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/pairs/cost.hpp"

#include <algorithm>
#include <array>

#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct PairsCoefficients {
  double launch_us;
  double row_us;           ///< per row and head
  double edge_us;          ///< per edge and head
  double feature_row_us;   ///< per row and feature
  double feature_edge_us;  ///< per edge and feature
  double moved_bytes_per_us;
  double backward;  ///< as many forward passes, but for the launch

  PairsCoefficients scaled(DeviceRatio ratio) const {
    PairsCoefficients scaled = *this;
    scaled.row_us /= ratio.processors;
    scaled.edge_us /= ratio.processors;
    scaled.feature_row_us /= ratio.processors;
    scaled.feature_edge_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

/// From instructions: a step of 16 edges has about 40 and 1.9 for each feature, a pair of rows 200
/// and 2.3 for each feature; somewhat more than half of the slots are used. Measured, an edge takes
/// somewhat longer, and so does the way back.
constexpr std::array<Fitted<PairsCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "counted instructions, corrected on six graphs"),
      {.launch_us = 13.2,
       .row_us = 2.2e-4,
       .edge_us = 1e-5,
       .feature_row_us = 3.2e-6,
       .feature_edge_us = 2.8e-7,
       .moved_bytes_per_us = 4.2e6,
       .backward = 3.3}}}};

}  // namespace

double predict_pairs_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const PairsCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const auto rows = static_cast<double>(problem.graph.num_rows());
  const auto cols = static_cast<double>(problem.graph.num_cols());
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const auto heads = static_cast<double>(options.heads);
  const auto features = static_cast<double>(options.features);
  const double working = rows * (heads * fit.row_us + features * fit.feature_row_us) +
                         edges * (heads * fit.edge_us + features * fit.feature_edge_us);
  const double row_bytes = features * static_cast<double>(bytes_per_element(options.precision));
  const double moving = (2 * rows + 2 * cols) * row_bytes / fit.moved_bytes_per_us;
  return fit.launch_us + std::max(working, moving);
}

double predict_pairs_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const PairsCoefficients fit = coefficients_for(coefficients, traits);
  return fit.launch_us +
         fit.backward * (predict_pairs_attention_us(problem, traits) - fit.launch_us);
}

}  // namespace tessera::ops
