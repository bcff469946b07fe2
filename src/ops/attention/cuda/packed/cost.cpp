// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16", "8 heads of 8, one of 64 and of 128 features on two graphs"),
      {.launch_us = 1,
       .head_tile_us = 9.5e-4,
       .feature_tile_us = 1.05e-4,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

/// Of GAT with heads of 32 features and more, whose weights are in bf16.
constexpr std::array<Fitted<WindowCoefficients>, 1> wide_coefficients = {
    {{fitted_on_h200("2026-11-17", "one head of 64 features on three graphs, 4 of 32 on one"),
      {.launch_us = 1,
       .tile_us = 4e-4,
       .head_tile_us = 2.6e-3,
       .feature_tile_us = 1.7e-5,
       .last_tile_us = 1.6,
       .moved_bytes_per_us = 4.2e6}}}};

constexpr std::array<Fitted<WindowCoefficients>, 1> dot_coefficients = {
    {{fitted_on_h200("2026-11-17", "one head of 64 and of 128 features on one graph"),
      {.launch_us = 1,
       .head_tile_us = 1e-3,
       .feature_tile_us = 4.6e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_packed_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const AttentionOptions& options = problem.options;
  const bool wide = options.features / options.heads >= 32;
  const auto& fitted = options.form == AttentionForm::dot ? dot_coefficients
                       : wide                             ? wide_coefficients
                                                          : coefficients;
  return predict_windows_us(problem, coefficients_for(fitted, traits));
}

}  // namespace tessera::ops
