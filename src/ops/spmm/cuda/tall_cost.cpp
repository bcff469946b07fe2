// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_cost.hpp"

#include <algorithm>
#include <cmath>

#include "tiles/sample.hpp"

namespace tessera::ops {

double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy) {
  // Of an H200.
  constexpr double launch_us = 4;
  constexpr double processors = 132;
  constexpr double gathered_bytes_per_us = 6.0e6;
  constexpr double rest_bytes_per_us = 7.4e6;
  constexpr double moved_bytes_per_us = 3.4e6;
  constexpr double products_per_us = 5.0e8;
  constexpr double stage_us = 0.35;  // one stage of one block, with three others beside it
  const auto side =
      problem.pass == SpmmPass::forward ? tiles::Side::forward : tiles::Side::transposed;
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, policy.height, side, policy.min_uses);
  const bool half = bytes_per_element(problem.precision) == 2;
  const auto features = static_cast<double>(problem.features);
  const double row_bytes = features * (half ? 2 : 4);
  const double columns = sample.columns;
  const double rows = static_cast<double>(
      problem.pass == SpmmPass::forward ? problem.graph.num_rows() : problem.graph.num_cols());
  const double gathering = columns * row_bytes / gathered_bytes_per_us;
  // Y is written once, every tile's words and columns are read once for each 128 features.
  const double chunks = std::ceil(features / 128);
  const double structure = columns / 64 * (policy.height * 8 + 256) * chunks;
  const double moving = (rows * row_bytes + structure) / moved_bytes_per_us;
  const double planes = half ? 1 : policy.planes;
  const double multiplying =
      columns * policy.height * std::max(32.0, features) * planes / products_per_us;
  // A window that stays whole keeps its block busy to the end.
  const double whole_columns = 16 * static_cast<double>(policy.min_cut_steps);
  const double waiting =
      std::min(sample.longest_columns, whole_columns) / 64 * stage_us * (half ? 1 : 2);
  const double windows = std::max(1.0, rows / policy.height);
  const double pieces = windows * std::max(1.0, columns / windows / whole_columns);
  const double filled = std::min(1.0, pieces / processors);
  // Sums of the rest are written and read once.
  const double rest = policy.min_uses == 1
                          ? 0
                          : launch_us + sample.rest_edges * row_bytes / rest_bytes_per_us +
                                rows * features * 8 / moved_bytes_per_us;
  const double moved = (gathering + moving) / std::max(0.05, filled);
  return launch_us + rest + std::max({moved, multiplying, waiting});
}

}  // namespace tessera::ops
