// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> gat_coefficients = {
    {{fitted_on_h200("2026-11-17",
                     "one head of 64 features in bf16 on three graphs, 8 heads of 8 on one"),
      {.launch_us = 1,
       .tile_us = 1e-3,
       .head_tile_us = 2.45e-3,
       .feature_tile_us = 2.9e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

constexpr std::array<Fitted<WindowCoefficients>, 1> dot_coefficients = {
    {{fitted_on_h200(
          "2026-11-17",
          "one head of 64 and 128 features in bf16 on three graphs, 8 heads of 8 on one"),
      {.launch_us = 1,
       .head_tile_us = 2.35e-3,
       .feature_tile_us = 4.4e-5,
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
  const bool gat = problem.options.form == AttentionForm::gat;
  const auto& narrow = gat ? gat_coefficients : dot_coefficients;
  return predict_windows_us(problem, coefficients_for(wide ? fp32_coefficients : narrow, traits));
}

}  // namespace tessera::ops
