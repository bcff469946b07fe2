// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/attention/cuda/short/launch.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct ShortCoefficients {
  double launch_us;
  double window_us;        ///< per window and head
  double step_us;          ///< per step and head: weights and their sum
  double feature_step_us;  ///< per step and feature: products with K and V
  double moved_bytes_per_us;
  double gathered_bytes_per_us;

  ShortCoefficients scaled(DeviceRatio ratio) const {
    ShortCoefficients scaled = *this;
    scaled.window_us /= ratio.processors;
    scaled.step_us /= ratio.processors;
    scaled.feature_step_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.gathered_bytes_per_us *= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<ShortCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "nothing yet: instructions counted, half of the slots filled"),
      {.launch_us = 6,
       .window_us = 3.5e-4,
       .step_us = 1.2e-4,
       .feature_step_us = 3.6e-6,
       .moved_bytes_per_us = 4.2e6,
       .gathered_bytes_per_us = 6e6}}}};

}  // namespace

double predict_short_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const ShortCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, short_attention_height, tiles::Side::forward);
  const auto rows = static_cast<double>(problem.graph.num_rows());
  const auto cols = static_cast<double>(problem.graph.num_cols());
  const auto heads = static_cast<double>(options.heads);
  const auto features = static_cast<double>(options.features);
  const double row_bytes = features * static_cast<double>(bytes_per_element(options.precision));
  const double windows = std::ceil(rows / short_attention_height);
  // The last step of a window is half full on average.
  const double steps = sample.columns / tiles::step_columns + windows / 2;
  const double working = windows * heads * fit.window_us +
                         steps * (heads * fit.step_us + features * fit.feature_step_us);
  const double moving = (2 * rows + 2 * cols) * row_bytes / fit.moved_bytes_per_us;
  const double gathering = 2 * steps * tiles::step_columns * row_bytes / fit.gathered_bytes_per_us;
  return fit.launch_us + std::max({working, moving, gathering});
}

}  // namespace tessera::ops
