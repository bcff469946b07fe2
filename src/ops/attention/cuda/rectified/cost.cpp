// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rectified/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "one head of 64 features in bf16 on three graphs"),
      {.launch_us = 1,
       .tile_us = 1e-3,
       .head_tile_us = 3e-3,
       .feature_tile_us = 1.27e-4,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_rectified_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  return predict_windows_us(problem, coefficients_for(coefficients, traits));
}

}  // namespace tessera::ops
