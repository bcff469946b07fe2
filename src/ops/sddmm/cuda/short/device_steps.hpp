// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/sddmm/cuda/short/runs.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops {

/// The steps of a graph on a GPU, in runs: see ShortDotsLaunch.
struct DeviceDotSteps {
  Buffer<VertexId> columns;
  Buffer<std::uint32_t> masks;
  std::vector<DotRun> host_runs;
  Buffer<DotRun> runs;  ///< and one more without steps
  Buffer<DotPlaces> places;
};

/// Made at the first call for a place's memory and a length of runs, then kept with the graph.
std::shared_ptr<const DeviceDotSteps> device_dot_steps(const Graph& graph, int run_steps,
                                                       const Place& place);

}  // namespace tessera::ops
