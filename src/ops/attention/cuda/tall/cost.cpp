// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/attention/cuda/tall/launch.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct TallAttentionCoefficients {
  double launch_us;
  double tile_us;             ///< per tile: bringing it
  double head_tile_us;        ///< per tile and head: weights and their sum
  double feature_tile_us;     ///< per tile and feature: products with V, and with K for scores
  double last_tile_us;        ///< per tile of a long window, which others do not hide
  double moved_bytes_per_us;  ///< features once, from and to memory

  TallAttentionCoefficients scaled(DeviceRatio ratio) const {
    TallAttentionCoefficients scaled = *this;
    scaled.tile_us /= ratio.processors;
    scaled.head_tile_us /= ratio.processors;
    scaled.feature_tile_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<TallAttentionCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16",
                     "GAT and dot products of 64 features in bf16, one head on seven graphs and "
                     "eight on one"),
      {.launch_us = 1,
       .tile_us = 2.1e-3,
       .head_tile_us = 2.4e-3,
       .feature_tile_us = 2.5e-5,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_tall_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const TallAttentionCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, tall_attention_height, tiles::Side::forward);
  const auto rows = static_cast<double>(problem.graph.num_rows());
  const auto heads = static_cast<double>(options.heads);
  const auto features = static_cast<double>(options.features);
  const double matrices = options.form == AttentionForm::gat ? 1 : 2;
  const double windows = std::ceil(rows / tall_attention_height);
  // The last tile of a window is half full on average.
  const double tiles = sample.columns / tiles::tile_columns + windows / 2;
  const double last_tiles = std::min(8.0, 2 * tiles / std::max(1.0, windows));
  const double working =
      tiles * (fit.tile_us + heads * fit.head_tile_us + features * matrices * fit.feature_tile_us);
  const double moving = (rows + matrices * static_cast<double>(problem.graph.num_cols())) *
                        features * 2 / fit.moved_bytes_per_us;
  return fit.launch_us + last_tiles * fit.last_tile_us + std::max(working, moving);
}

}  // namespace tessera::ops
