// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/attention/cuda/tall/launch.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

/// A step takes 16 distinct columns of windows of 16 rows, or a tile of 64 of windows of 64.
struct WindowCoefficients {
  double launch_us = 13.2;
  double window_us = 0;          ///< per window and head
  double feature_window_us = 0;  ///< per window and feature
  double step_us = 0;            ///< per step: bringing it
  double head_step_us = 0;       ///< per step and head: weights and their sum
  double feature_step_us;        ///< per step and feature: products with V, and with K for scores
  double last_step_us;           ///< per step of a long window, which others do not hide
  double moved_bytes_per_us = 4.2e6;  ///< features, from and to memory

  void scale(DeviceRatio ratio) {
    window_us /= ratio.processors;
    feature_window_us /= ratio.processors;
    step_us /= ratio.processors;
    head_step_us /= ratio.processors;
    feature_step_us /= ratio.processors;
    moved_bytes_per_us *= ratio.memory;
  }
};
using Coefficients = Fitted<WindowCoefficients>;

// Of 16 rows.

constexpr Coefficients short_dot = {
    fitted_on_h200("2026-11-17", "64 and 128 features in bf16 on six graphs"),
    {.launch_us = 15.5,
     .feature_window_us = 6.9e-6,
     .feature_step_us = 7.5e-6,
     .last_step_us = 0.23}};

/// Both sweeps.
constexpr Coefficients short_dot_backward = {
    fitted_on_h200("2026-11-17", "64 and 128 features in bf16 on six graphs"),
    {.launch_us = 22,
     .feature_window_us = 4.2e-5,
     .feature_step_us = 1.85e-5,
     .last_step_us = 0.53}};

constexpr Coefficients short_gat = {
    fitted_on_h200("2026-11-17", "64 and 128 features on four large graphs"),
    {.window_us = 1.4e-4,
     .feature_window_us = 9.5e-6,
     .feature_step_us = 5.73e-6,
     .last_step_us = 0.46}};

/// Both sweeps: windows count for more than in the forward pass, as they have rows of their own to
/// read, and long ones for less.
constexpr Coefficients short_gat_backward = {
    fitted_on_h200("2026-11-17", "64 and 128 features on four graphs"),
    {.feature_window_us = 6.3e-5, .feature_step_us = 1.5e-5, .last_step_us = 1.15}};

/// What a backward pass costs where the forward pass keeps sums for it: what keeping them takes
/// longer, states of targets from these, and the sweep over columns.
constexpr Coefficients short_gat_kept = {
    fitted_on_h200("2026-11-18", "64 features on four graphs"),
    {.feature_window_us = 5.8e-5, .feature_step_us = 1.17e-5, .last_step_us = 0.4}};

constexpr Coefficients short_gatv2 = {
    fitted_on_h200("2026-11-17", "heads of 32, 64 and 128 features in bf16 on three large graphs"),
    {.window_us = 1e-3,
     .feature_window_us = 1.5e-5,
     .head_step_us = 2.6e-4,
     .feature_step_us = 1.9e-5,
     .last_step_us = 1.0}};

// Of 64 rows.

constexpr Coefficients tall_dot = {
    fitted_on_h200("2026-11-17",
                   "one head of 64 and 128 features in bf16 on three graphs, 8 heads of 8 on one"),
    {.head_step_us = 2.35e-3, .feature_step_us = 4.4e-5, .last_step_us = 1}};

/// Twice the bytes, and two or three products for one.
constexpr Coefficients tall_fp32 = {
    fitted_on_h200("2026-11-16", "dot products of three shapes on COLLAB, one on ego-twitter"),
    {.step_us = 4.4e-3, .head_step_us = 2.4e-3, .feature_step_us = 9.2e-5, .last_step_us = 1.4}};

constexpr Coefficients tall_scaled = {
    fitted_on_h200("2026-11-16", "8 heads of 8 and one of 64 and 128 features on seven graphs"),
    {.head_step_us = 1.1e-3, .feature_step_us = 2.25e-4, .last_step_us = 1.4}};

constexpr Coefficients tall_packed = {
    fitted_on_h200("2026-11-18",
                   "8 and 16 heads of 8 and 4 of 16 on three graphs; what the last tiles take, to "
                   "8 heads of 8 on 28"),
    {.head_step_us = 4.8e-4, .feature_step_us = 6.4e-5, .last_step_us = 0.7}};

constexpr Coefficients tall_factored = {
    fitted_on_h200("2026-11-17", "one head of 64 and 128 features on three graphs"),
    {.head_step_us = 2.66e-3, .feature_step_us = 3.1e-5, .last_step_us = 0.5}};

/// Steps multiply so many features; so many rows of them are moved.
double windows_us(const AttentionProblem& problem, const WindowCoefficients& fit,
                  const SampledSteps& work, double features, double rows, double most_last_steps) {
  const PassSizes sizes = sizes_of(problem);
  const auto heads = static_cast<double>(problem.options.heads);
  const double working =
      work.windows * (heads * fit.window_us + sizes.features * fit.feature_window_us) +
      work.steps * (fit.step_us + heads * fit.head_step_us + features * fit.feature_step_us);
  return fit.launch_us + work.last(most_last_steps) * fit.last_step_us +
         std::max(working, rows * sizes.row_bytes / fit.moved_bytes_per_us);
}

double short_us(const AttentionProblem& problem, const Coefficients& coefficients,
                const DeviceTraits& traits, double most_last_steps = 64) {
  const PassSizes sizes = sizes_of(problem);
  return windows_us(problem, coefficients.on(traits),
                    {problem.graph, short_window_height, tiles::step_columns}, sizes.features,
                    2 * sizes.vertices, most_last_steps);
}

double tall_us(const AttentionProblem& problem, const Coefficients& coefficients,
               const DeviceTraits& traits) {
  const PassSizes sizes = sizes_of(problem);
  const double matrices = problem.options.form == AttentionForm::gat ? 1 : 2;
  return windows_us(problem, coefficients.on(traits),
                    {problem.graph, tall_window_height, tiles::tile_columns},
                    matrices * sizes.features, sizes.targets + matrices * sizes.sources, 8);
}

const Coefficients& tall_coefficients(const AttentionOptions& options) {
  switch (tall_kind(options)) {
    case TallKind::scaled_gat: return tall_scaled;
    case TallKind::packed_gat: return tall_packed;
    case TallKind::factored_gat: return tall_factored;
    case TallKind::dots: break;
  }
  return bytes_per_element(options.precision) == 4 ? tall_fp32 : tall_dot;
}

}  // namespace

double predict_short_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  switch (problem.options.form) {
    case AttentionForm::gat: return short_us(problem, short_gat, traits);
    case AttentionForm::gatv2: return short_us(problem, short_gatv2, traits, 32);
    default: return short_us(problem, short_dot, traits);
  }
}

double predict_short_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const AttentionOptions& options = problem.options;
  switch (options.form) {
    case AttentionForm::dot: return short_us(problem, short_dot_backward, traits);
    // As many forward passes: sums of masks cost as much as scores.
    case AttentionForm::gatv2: return 3.3 * predict_short_attention_us(problem, traits);
    default: break;
  }
  const bool keeps = options.features == kept_head_width * options.heads;
  return short_us(problem, keeps ? short_gat_kept : short_gat_backward, traits);
}

TallKind tall_kind(const AttentionOptions& options) {
  if (options.form != AttentionForm::gat) return TallKind::dots;
  if (options.precision != Precision::bf16) return TallKind::scaled_gat;
  return tall_block_heads(static_cast<int>(options.features / options.heads)) > 1
             ? TallKind::packed_gat
             : TallKind::factored_gat;
}

double predict_tall_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  return tall_us(problem, tall_coefficients(problem.options), traits);
}

/// As many forward passes as they took on one to three graphs.
double predict_tall_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const std::int64_t width = problem.options.features / problem.options.heads;
  const double forward = predict_tall_attention_us(problem, traits);
  switch (tall_kind(problem.options)) {
    // Of the two products of the forward pass backward has seven, and the weights twice.
    case TallKind::dots: return 3 * forward;
    case TallKind::packed_gat: return 2.55 * forward;
    case TallKind::factored_gat: return (width > 64 ? 2.7 : 2.35) * forward;
    case TallKind::scaled_gat: break;
  }
  // Either sweep over narrow heads gathers rows once, as a forward pass does. Wide ones go by
  // factors of columns, as rows in two parts.
  return width < 32 ? 2 * forward : 1.7 * tall_us(problem, tall_fp32, traits);
}

}  // namespace tessera::ops
