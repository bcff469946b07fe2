// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ops/sddmm/cuda/short/launch.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

inline std::int64_t window_of(const DotRun& run) {
  return run.window_and_steps >> DotRun::step_bits;
}
inline int steps_of(const DotRun& run) {
  return static_cast<int>(run.window_and_steps & DotRun::step_mask);
}

/// Every window in as few runs of up to `run_steps` as it takes, of about equal length.
std::vector<DotRun> cut_into_runs(const tiles::TiledGraph& tiled, int run_steps);

/// Where the runs of each block begin, and at last where all end: neighbouring runs, about as much
/// to do for each.
std::vector<std::int32_t> share_runs(std::span<const DotRun> runs, int num_blocks);

}  // namespace tessera::ops
