// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/attention/cuda/tall/launch.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/counts.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

/// Windows of 64 rows: a step takes a tile of 64 distinct columns.
struct WindowCoefficients {
  double launch_us = 13.2;
  double step_us = 0;       ///< per step: bringing it
  double head_step_us = 0;  ///< per step and head: weights and their sum
  double feature_step_us;   ///< per step and feature: products with V, and with K for scores
  double last_step_us;      ///< per step of a long window, which others do not hide
  double moved_bytes_per_us = streamed_bytes_per_us;  ///< features, from and to memory

  void scale(DeviceRatio ratio) {
    step_us /= ratio.processors;
    head_step_us /= ratio.processors;
    feature_step_us /= ratio.processors;
    moved_bytes_per_us *= ratio.memory;
  }
};
using Coefficients = Fitted<WindowCoefficients>;

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

/// What windows of 16 rows count: products of their steps, rows of their own, and the steps of the
/// longest of them, which is cut into pieces of so many.
std::array<double, 3> short_counts(const AttentionProblem& problem, const DeviceTraits& traits) {
  constexpr double height = short_window_height, most_last_steps = 64;
  const PassSizes sizes = sizes_of(problem);
  const auto [windows, steps] =
      SampledSteps(problem.graph, short_window_height, tiles::step_columns);
  const double longest =
      tiles::sample_windows(problem.graph, short_window_height, tiles::Side::forward)
          .longest_columns /
      tiles::step_columns;
  const double operations = 2 * 2 * height * tiles::step_columns;  // of two products, by features
  const double bytes = 2 * height * sizes.element_bytes;
  return {multiplied_us(operations * steps * sizes.features, traits),
          gathered_us(bytes * windows * sizes.features, traits),
          std::min(longest, most_last_steps) * step_us};
}

double tall_us(const AttentionProblem& problem, const Coefficients& coefficients,
               const DeviceTraits& traits) {
  constexpr double most_last_steps = 8;
  const WindowCoefficients fit = coefficients.on(traits);
  const PassSizes sizes = sizes_of(problem);
  const double matrices = problem.options.form == AttentionForm::gat ? 1 : 2;
  const SampledSteps work(problem.graph, tall_window_height, tiles::tile_columns);
  const double working =
      work.steps * (fit.step_us + static_cast<double>(problem.options.heads) * fit.head_step_us +
                    matrices * sizes.features * fit.feature_step_us);
  const double moved = (sizes.targets + matrices * sizes.sources) * sizes.row_bytes;
  return fit.launch_us + work.last(most_last_steps) * fit.last_step_us +
         std::max(working, moved / fit.moved_bytes_per_us);
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
  const std::array<double, 3> counts = short_counts(problem, traits);
  switch (problem.options.form) {
    case AttentionForm::gat: return counted_us(cost_fits::attention_short_gat, 1, counts);
    case AttentionForm::gatv2: return counted_us(cost_fits::attention_short_gatv2, 1, counts);
    default: return counted_us(cost_fits::attention_short_dot, 1, counts);
  }
}

double predict_short_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const AttentionOptions& options = problem.options;
  // As many forward passes: sums of masks cost as much as scores.
  if (options.form == AttentionForm::gatv2)
    return 3.3 * predict_short_attention_us(problem, traits);
  std::array<double, 3> counts = short_counts(problem, traits);
  if (options.form == AttentionForm::dot) {
    return counted_us(cost_fits::attention_short_dot_back, 3, counts);
  }
  // Where the forward pass keeps no sums, more of them are computed again.
  if (options.features != kept_head_width * options.heads) counts[0] *= 1.3;
  return counted_us(cost_fits::attention_short_gat_back, 3, counts);
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
