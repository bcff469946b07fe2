// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// Steps of a window that one warp takes, one after the other, to compute dot products.
struct alignas(8) DotRun {
  std::int32_t first_step = 0;
  std::uint32_t window_and_steps = 0;  ///< the steps in the low bits

  static constexpr int step_bits = 3;
  static constexpr std::uint32_t step_mask = (1u << step_bits) - 1;

  constexpr std::int64_t window() const { return window_and_steps >> step_bits; }
  constexpr int num_steps() const { return static_cast<int>(window_and_steps & step_mask); }

  friend bool operator==(const DotRun&, const DotRun&) = default;
};

/// Every window in as few runs of up to `run_steps` as it takes, of about equal length. Throws
/// `unsupported` for more than 2^31 - 1 steps.
std::vector<DotRun> cut_into_runs(const TiledGraph& tiled, int run_steps);

/// Where the runs of each block begin, and at last where all end: neighbouring runs, about as much
/// to do for each.
std::vector<std::int32_t> share_runs(std::span<const DotRun> runs, int num_blocks);

}  // namespace tessera::tiles
