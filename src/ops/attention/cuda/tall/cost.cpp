// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/cost.hpp"

#include <array>

#include "ops/attention/cuda/tall/window_cost.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<Fitted<WindowCoefficients>, 1> gat_coefficients = {
    {{fitted_on_h200("2026-11-17",
                     "one head of 64 features in bf16 on three graphs, 8 heads of 8 on one"),
      {.launch_us = 13.2,
       .tile_us = 1e-3,
       .head_tile_us = 2.45e-3,
       .feature_tile_us = 2.9e-5,
       .last_tile_us = 1,
       .moved_bytes_per_us = 4.2e6}}}};

constexpr std::array<Fitted<WindowCoefficients>, 1> dot_coefficients = {
    {{fitted_on_h200(
          "2026-11-17",
          "one head of 64 and 128 features in bf16 on three graphs, 8 heads of 8 on one"),
      {.launch_us = 13.2,
       .head_tile_us = 2.35e-3,
       .feature_tile_us = 4.4e-5,
       .last_tile_us = 1,
       .moved_bytes_per_us = 4.2e6}}}};

/// Of heads of 32 features and more in bf16, which have blocks of their own.
constexpr std::array<Fitted<WindowCoefficients>, 1> wide_gat_coefficients = {
    {{fitted_on_h200("2026-11-17", "one head of 64 and 128 features on three graphs"),
      {.launch_us = 13.2,
       .head_tile_us = 2.66e-3,
       .feature_tile_us = 3.1e-5,
       .last_tile_us = 0.5,
       .moved_bytes_per_us = 4.2e6}}}};

/// Of heads of 64 features and more in 16 bits, by groups of warps.
constexpr std::array<Fitted<WindowCoefficients>, 1> wide_dot_coefficients = {
    {{fitted_on_h200("2026-11-17", "one head of 64 and 128 features in bf16 on three graphs"),
      {.launch_us = 13.2,
       .head_tile_us = 1.16e-3,
       .feature_tile_us = 3.66e-5,
       .last_tile_us = 0.5,
       .moved_bytes_per_us = 4.2e6}}}};

/// Twice the bytes, and two or three products for one.
constexpr std::array<Fitted<WindowCoefficients>, 1> fp32_coefficients = {
    {{fitted_on_h200("2026-11-16", "dot products of three shapes on COLLAB, one on ego-twitter"),
      {.launch_us = 13.2,
       .tile_us = 4.4e-3,
       .head_tile_us = 2.4e-3,
       .feature_tile_us = 9.2e-5,
       .last_tile_us = 1.4,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_tall_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const AttentionOptions& options = problem.options;
  const std::int64_t width = options.features / options.heads;
  const auto& gat = width >= 32 && options.precision == Precision::bf16 ? wide_gat_coefficients
                                                                        : gat_coefficients;
  const auto& dot = width >= 64 ? wide_dot_coefficients : dot_coefficients;
  const auto& fitted = bytes_per_element(options.precision) == 4 ? fp32_coefficients
                       : options.form == AttentionForm::gat      ? gat
                                                                 : dot;
  return predict_windows_us(problem, coefficients_for(fitted, traits));
}

}  // namespace tessera::ops
