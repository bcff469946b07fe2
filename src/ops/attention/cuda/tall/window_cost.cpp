// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/window_cost.hpp"

#include <algorithm>
#include <cmath>

#include "ops/attention/cuda/tall/launch.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {

WindowCoefficients WindowCoefficients::scaled(DeviceRatio ratio) const {
  WindowCoefficients scaled = *this;
  scaled.tile_us /= ratio.processors;
  scaled.head_tile_us /= ratio.processors;
  scaled.feature_tile_us /= ratio.processors;
  scaled.moved_bytes_per_us *= ratio.memory;
  return scaled;
}

double predict_windows_us(const AttentionProblem& problem, const WindowCoefficients& fit) {
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
                        features * static_cast<double>(bytes_per_element(options.precision)) /
                        fit.moved_bytes_per_us;
  return fit.launch_us + last_tiles * fit.last_tile_us + std::max(working, moving);
}

}  // namespace tessera::ops
