// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/cost.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

// Fitted to timings of an H200: eight graphs at 16 to 256 features in fp32 and bf16, and the
// kernels that measured plans had chosen on three larger ones.
constexpr double processors = 132;
/// Launching, and filling the first stages.
constexpr double start_us = 7.9;
constexpr double least_us = 9.2;
constexpr double moved_bytes_per_us = 3.15e6;
/// How much longer a tile takes a block than a processor that it shares with others.
constexpr double block_tile_share = 1.5;
/// All blocks together and the one with the longest piece do not wait for each other to the end:
/// the longer of both counts, and some of the other.
constexpr double power = 1.6;
/// What rows of tall windows share: a window of 128 rows takes 1.5 times the tiles of one of 64.
constexpr double shared_of_groups = 0.5;
constexpr double third_plane = 0.36;  ///< more work
constexpr double rest_launch_us = 5;
/// What its longest row keeps a block of the rest busy for, by edges.
constexpr double rest_edge_us = 0.007;
constexpr double rest_edge_us_per_byte = 6e-5;
/// More for a tile with values, and for each of them.
constexpr double half_values_us = 0.22;
constexpr double full_values_us = 0.36;
constexpr double value_us = 2.1e-4;
/// Putting values of a run in order.
constexpr double pack_launch_us = 4;
constexpr double packed_values_per_us = 3.5e5;
/// What a block that adds up the pieces of a window comes too late by, how fast their sums move,
/// and how many windows are cut where most are not.
constexpr double merge_us = 1;
constexpr double slot_bytes_per_us = 2e6;
constexpr double some_windows = 0.32;

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

constexpr Rates half_rates = {{0.074, 0.00079}, {0.064, 0.00246}, 3.9e6};
constexpr Rates full_rates = {{0.054, 0.00120}, {0.090, 0.00261}, 6.3e6};

double longest_degree(std::span<const EdgeOffset> offsets) {
  EdgeOffset longest = 0;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    longest = std::max(longest, offsets[i + 1] - offsets[i]);
  }
  return static_cast<double>(longest);
}

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
  const double widest = policy.planes == 3 ? 64 : 128;
  const double chunks = std::max(1.0, std::ceil(features / widest));
  const double chunk_bytes = std::clamp(features, 32.0, widest) * element_bytes;
  const double groups = policy.height / 64;
  const double windows = std::max(1.0, std::ceil(rows / policy.height));
  const double tiles = sample.columns / 64;
  const double planes = policy.planes == 3 ? 1 + third_plane : 1;
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const double values_us =
      (half ? half_values_us : full_values_us) + value_us * edges / std::max(1.0, tiles);
  const double tile_us =
      rates.tile(chunk_bytes) * (shared_of_groups + (1 - shared_of_groups) * groups) * planes +
      (policy.valued ? values_us : 0);
  const double window_us = rates.window(chunk_bytes) * groups;
  double work_us = chunks * (tiles * tile_us + windows * window_us) / processors;

  // Windows longer than a block's share are cut (tiles/pieces.cpp). A piece keeps its block busy to
  // the end, and its sums are written and read.
  const double steps = sample.columns / 16;
  const double blocks = 4 * processors / groups / chunks;
  const double cut = std::max(static_cast<double>(policy.min_cut_steps), steps / blocks);
  const double longest = sample.longest_columns / 16;
  const double longest_us = (std::min(longest, cut) / 4 + 2) * block_tile_share * tile_us;
  work_us = std::pow(std::pow(work_us, power) + std::pow(longest_us, power), 1 / power);
  if (longest > cut) {
    const double cut_share = steps / windows > cut ? 1.0 : some_windows;
    const double slot_bytes = policy.height * features * 4;
    work_us += merge_us + cut_share * steps / cut * 2 * slot_bytes / slot_bytes_per_us;
  }
  // X and Y move once.
  const auto vertices =
      static_cast<double>(problem.graph.num_rows()) + static_cast<double>(problem.graph.num_cols());
  work_us = std::max(work_us, vertices * features * element_bytes / moved_bytes_per_us);
  if (policy.valued && problem.edge_values_expected) {
    work_us += pack_launch_us + edges / packed_values_per_us;
  }
  if (policy.min_uses > 1) {
    // Sums of the rest are written and read once.
    const double row_bytes = features * element_bytes;
    const double longest_row = longest_degree(forward ? problem.graph.row_offsets().span()
                                                      : problem.graph.csc().col_offsets.span());
    work_us += rest_launch_us + rows * features * 8 / moved_bytes_per_us +
               std::max(sample.rest_edges * row_bytes / rates.rest_bytes_per_us,
                        longest_row * (rest_edge_us + rest_edge_us_per_byte * row_bytes));
  }
  return std::max(least_us, start_us + work_us);
}

}  // namespace tessera::ops
