// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_cost.hpp"

#include <algorithm>
#include <cmath>

#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

// Fitted to timings of an H200 on 13 graphs at 16 to 256 features.
constexpr double processors = 132;
/// Launching, and filling the first stages.
constexpr double start_us = 11;
constexpr double least_us = 14;
constexpr double moved_bytes_per_us = 3.4e6;
/// How much longer a tile takes a block than a processor that it shares with others.
constexpr double block_tile_share = 2.7;
constexpr double rest_launch_us = 5;
constexpr double value_us = 0.38;  ///< more for a tile with values
/// What a block that adds up the pieces of a window comes too late by.
constexpr double merge_us = 4;

/// What work costs one processor, for 64 rows: a start, and bytes of a row of X in one launch's
/// width.
struct Rate {
  double start_us;
  double us_per_byte;

  double operator()(double bytes) const { return start_us + us_per_byte * bytes; }
};

struct Rates {
  Rate tile;    ///< 64 columns
  Rate window;  ///< starting it and storing its sums
  double rest_bytes_per_us;
};

constexpr Rates half_rates = {{0.044, 0.00094}, {0.05, 0.0027}, 6.0e6};
constexpr Rates full_rates = {{0.030, 0.00147}, {0.11, 0.0023}, 6.2e6};

}  // namespace

double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy) {
  const bool forward = problem.pass == SpmmPass::forward;
  const tiles::Side side = tile_side(problem.pass);
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, policy.height, side, policy.min_uses);
  const bool half = bytes_per_element(problem.precision) == 2;
  const Rates& rates = half ? half_rates : full_rates;
  const auto features = static_cast<double>(problem.features);
  const auto rows =
      static_cast<double>(forward ? problem.graph.num_rows() : problem.graph.num_cols());
  const double element_bytes = half ? 2 : 4;
  const double chunks = std::max(1.0, std::ceil(features / 128));
  const double chunk_bytes = std::clamp(features, 32.0, 128.0) * element_bytes;
  const double groups = policy.height / 64;
  const double windows = std::max(1.0, std::ceil(rows / policy.height));
  const double tiles = sample.columns / 64;
  const double planes = policy.planes == 3 ? 1.15 : 1;
  const double tile_us =
      rates.tile(chunk_bytes) * (0.3 + 0.7 * groups) * planes + (policy.valued ? value_us : 0);
  const double window_us = rates.window(chunk_bytes) * groups;
  double work_us = chunks * (tiles * tile_us + windows * window_us) / processors;

  // Windows longer than a block's share are cut (tiles/pieces.cpp). A piece keeps its block busy to
  // the end, and its sums are written and read.
  const double steps = sample.columns / 16;
  const double blocks = 4 * processors / groups / chunks;
  const double cut = std::max(static_cast<double>(policy.min_cut_steps), steps / blocks);
  const double longest = sample.longest_columns / 16;
  work_us = std::max(work_us, (std::min(longest, cut) / 4 + 2) * block_tile_share * tile_us);
  if (longest > cut) {
    const double cut_share = steps / windows > cut ? 1.0 : 0.15;
    const double slot_bytes = policy.height * features * 4;
    // Pieces are few for each block, so some have more to do.
    work_us =
        1.2 * work_us + merge_us + cut_share * steps / cut * 2 * slot_bytes / moved_bytes_per_us;
  }
  // X and Y move once.
  const auto vertices =
      static_cast<double>(problem.graph.num_rows()) + static_cast<double>(problem.graph.num_cols());
  work_us = std::max(work_us, vertices * features * element_bytes / moved_bytes_per_us);
  if (policy.min_uses > 1) {
    // Sums of the rest are written and read once.
    work_us += rest_launch_us +
               sample.rest_edges * features * element_bytes / rates.rest_bytes_per_us +
               rows * features * 8 / moved_bytes_per_us;
  }
  return std::max(least_us, start_us + work_us);
}

}  // namespace tessera::ops
