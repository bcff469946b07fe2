// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> coefficients = {
    {{fitted_on_h200(
          "2026-11-18",
          "8 and 16 heads of 8 and 4 of 16 on three graphs; what the last tiles take, to "
          "8 heads of 8 on 28"),
      {.launch_us = 13.2,
       .head_tile_us = 4.8e-4,
       .feature_tile_us = 6.4e-5,
       .last_tile_us = 0.7,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_packed_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  return predict_windows_us(problem, coefficients_for(coefficients, traits));
}

}  // namespace tessera::ops
