// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tiles/cuda/device_tiles.hpp"
#include "tiles/dot_steps.hpp"

namespace tessera::tiles {

/// DotSteps on a GPU. The runs are here, too, where blocks share them.
struct DeviceDotSteps {
  Buffer<std::uint32_t> masks;
  Buffer<DotRun> runs;  ///< and one more without steps
  Buffer<DotPlaces> places;
  std::vector<DotRun> host_runs;
};

/// Made at the first call for a length of runs, a side and a place's memory, then kept with the
/// graph.
std::shared_ptr<const DeviceDotSteps> device_dot_steps(const Graph& graph, int run_steps, Side side,
                                                       const Place& place);

}  // namespace tessera::tiles
