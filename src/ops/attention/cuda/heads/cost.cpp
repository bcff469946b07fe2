// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct HeadAttentionCoefficients {
  double launch_us;
  double head_tile_us;        ///< per tile and head: signs and sums of factors
  double feature_tile_us;     ///< per tile and feature: bringing, scaling, products
  double last_tile_us;        ///< per tile of a long window, which others do not hide
  double moved_bytes_per_us;  ///< features once, from and to memory

  HeadAttentionCoefficients scaled(DeviceRatio ratio) const {
    HeadAttentionCoefficients scaled = *this;
    scaled.head_tile_us /= ratio.processors;
    scaled.feature_tile_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<HeadAttentionCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16", "8 heads of 8 and one of 64 and 128 features on seven graphs"),
      {.launch_us = 1,
       .head_tile_us = 1.1e-3,
       .feature_tile_us = 2.25e-4,
       .last_tile_us = 2.1,
       .moved_bytes_per_us = 4.2e6}}}};

}  // namespace

double predict_heads_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const HeadAttentionCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, tall_attention_height, tiles::Side::forward);
  const auto rows = static_cast<double>(problem.graph.num_rows());
  const auto heads = static_cast<double>(options.heads);
  const auto features = static_cast<double>(options.features);
  const double windows = std::ceil(rows / tall_attention_height);
  // The last tile of a window is half full on average.
  const double tiles = sample.columns / tiles::tile_columns + windows / 2;
  const double last_tiles = std::min(8.0, 2 * tiles / std::max(1.0, windows));
  const double working = tiles * (heads * fit.head_tile_us + features * fit.feature_tile_us);
  const auto bytes = static_cast<double>(bytes_per_element(options.precision));
  const double moving = (rows + static_cast<double>(problem.graph.num_cols())) * features * bytes /
                        fit.moved_bytes_per_us;
  return fit.launch_us + last_tiles * fit.last_tile_us + std::max(working, moving);
}

}  // namespace tessera::ops
