// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/attention/cuda/short/gat_keeping.hpp"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct ShortCoefficients {
  double launch_us;
  double window_us;          ///< per window and head
  double feature_window_us;  ///< per window and feature
  double head_step_us;       ///< per step and head
  double feature_step_us;    ///< per step and feature
  double last_step_us;       ///< per step of a long window, which others do not hide
  double most_last_steps;    ///< of these
  double moved_bytes_per_us;

  ShortCoefficients scaled(DeviceRatio ratio) const {
    ShortCoefficients scaled = *this;
    scaled.window_us /= ratio.processors;
    scaled.feature_window_us /= ratio.processors;
    scaled.head_step_us /= ratio.processors;
    scaled.feature_step_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<ShortCoefficients>, 1> dot_coefficients = {
    {{fitted_on_h200("2026-11-17", "64 and 128 features in bf16 on six graphs"),
      {.launch_us = 15.5,
       .window_us = 0,
       .feature_window_us = 6.9e-6,
       .head_step_us = 0,
       .feature_step_us = 7.5e-6,
       .last_step_us = 0.23,
       .most_last_steps = 64,
       .moved_bytes_per_us = 4.2e6}}}};

/// Both sweeps.
constexpr std::array<Fitted<ShortCoefficients>, 1> dot_backward_coefficients = {
    {{fitted_on_h200("2026-11-17", "64 and 128 features in bf16 on six graphs"),
      {.launch_us = 22,
       .window_us = 0,
       .feature_window_us = 4.2e-5,
       .head_step_us = 0,
       .feature_step_us = 1.85e-5,
       .last_step_us = 0.53,
       .most_last_steps = 64,
       .moved_bytes_per_us = 4.2e6}}}};

constexpr std::array<Fitted<ShortCoefficients>, 1> gat_coefficients = {
    {{fitted_on_h200("2026-11-17", "64 and 128 features on four large graphs"),
      {.launch_us = 13.2,
       .window_us = 1.4e-4,
       .feature_window_us = 9.5e-6,
       .head_step_us = 0,
       .feature_step_us = 5.73e-6,
       .last_step_us = 0.46,
       .most_last_steps = 64,
       .moved_bytes_per_us = 4.2e6}}}};

/// Both sweeps: windows count for more than in the forward pass, as they have rows of their own to
/// read, and long ones for less.
constexpr std::array<Fitted<ShortCoefficients>, 1> gat_backward_coefficients = {
    {{fitted_on_h200("2026-11-17", "64 and 128 features on four graphs"),
      {.launch_us = 13.2,
       .window_us = 0,
       .feature_window_us = 6.3e-5,
       .head_step_us = 0,
       .feature_step_us = 1.5e-5,
       .last_step_us = 1.15,
       .most_last_steps = 64,
       .moved_bytes_per_us = 4.2e6}}}};

/// What a backward pass costs where the forward pass keeps sums for it: what keeping them takes
/// longer, states of targets from these, and the sweep over columns.
constexpr std::array<Fitted<ShortCoefficients>, 1> gat_kept_coefficients = {
    {{fitted_on_h200("2026-11-18", "64 features on four graphs"),
      {.launch_us = 13.2,
       .window_us = 0,
       .feature_window_us = 5.8e-5,
       .head_step_us = 0,
       .feature_step_us = 1.17e-5,
       .last_step_us = 0.4,
       .most_last_steps = 64,
       .moved_bytes_per_us = 4.2e6}}}};

constexpr std::array<Fitted<ShortCoefficients>, 1> gatv2_coefficients = {
    {{fitted_on_h200("2026-11-17",
                     "heads of 32, 64 and 128 features in bf16 on three large graphs"),
      {.launch_us = 13.2,
       .window_us = 1e-3,
       .feature_window_us = 1.5e-5,
       .head_step_us = 2.6e-4,
       .feature_step_us = 1.9e-5,
       .last_step_us = 1.0,
       .most_last_steps = 32,
       .moved_bytes_per_us = 4.2e6}}}};

double predict_us(const AttentionProblem& problem, const ShortCoefficients& fit) {
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
  const double last_steps = std::min(fit.most_last_steps, 2 * steps / std::max(1.0, windows));
  const double working = windows * (heads * fit.window_us + features * fit.feature_window_us) +
                         steps * (heads * fit.head_step_us + features * fit.feature_step_us);
  const double moving = (2 * rows + 2 * cols) * row_bytes / fit.moved_bytes_per_us;
  return fit.launch_us + last_steps * fit.last_step_us + std::max(working, moving);
}

}  // namespace

double predict_short_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const AttentionForm form = problem.options.form;
  const auto& fitted = form == AttentionForm::gat     ? gat_coefficients
                       : form == AttentionForm::gatv2 ? gatv2_coefficients
                                                      : dot_coefficients;
  return predict_us(problem, coefficients_for(fitted, traits));
}

double predict_short_dot_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  return predict_us(problem, coefficients_for(dot_backward_coefficients, traits));
}

double predict_short_gat_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const auto& fitted = problem.options.features == kept_head_width * problem.options.heads
                           ? gat_kept_coefficients
                           : gat_backward_coefficients;
  return predict_us(problem, coefficients_for(fitted, traits));
}

}  // namespace tessera::ops
