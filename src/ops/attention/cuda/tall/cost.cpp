// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16",
                     "GAT and dot products of 64 and 128 features in bf16 on three graphs"),
      {.launch_us = 1,
       .tile_us = 1e-3,
       .head_tile_us = 2.45e-3,
       .feature_tile_us = 3.8e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

/// Twice the bytes, and two or three products for one.
constexpr std::array<Fitted<WindowCoefficients>, 1> fp32_coefficients = {
    {{fitted_on_h200("2026-11-16", "dot products of three shapes on COLLAB, one on ego-twitter"),
      {.launch_us = 1,
       .tile_us = 4.4e-3,
       .head_tile_us = 2.4e-3,
       .feature_tile_us = 9.2e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_tall_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const bool wide = bytes_per_element(problem.options.precision) == 4;
  return predict_windows_us(problem,
                            coefficients_for(wide ? fp32_coefficients : coefficients, traits));
}

}  // namespace tessera::ops
