// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16",
                     "GAT and dot products of 64 features in bf16, one head on seven graphs and "
                     "eight on one"),
      {.launch_us = 1,
       .tile_us = 2.1e-3,
       .head_tile_us = 2.4e-3,
       .feature_tile_us = 2.5e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

/// Twice the bytes, and two or three products for one.
constexpr std::array<Fitted<WindowCoefficients>, 1> fp32_coefficients = {
    {{fitted_on_h200("2026-11-16", "instructions beside those of bf16"),
      {.launch_us = 1,
       .tile_us = 4e-3,
       .head_tile_us = 2.9e-3,
       .feature_tile_us = 6e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_tall_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const bool wide = bytes_per_element(problem.options.precision) == 4;
  return predict_windows_us(problem,
                            coefficients_for(wide ? fp32_coefficients : coefficients, traits));
}

}  // namespace tessera::ops
