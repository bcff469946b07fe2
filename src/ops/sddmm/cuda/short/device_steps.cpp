// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/device_steps.hpp"

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/rows.hpp"
#include "ops/sddmm/cuda/short/places.hpp"
#include "tessera/core/error.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

DeviceDotSteps made(const Graph& graph, int run_steps, const Place& place) {
  tiles::DeviceTiles tiles =
      tiles::translate_on_device(graph, short_dot_rows, tiles::Side::forward, place);
  const std::int64_t num_steps = tiles.host.num_steps();
  if (num_steps > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, fmt::format("{} steps of tiles", num_steps), "tiles",
                "partition the graph");
  }
  DeviceDotSteps steps;
  steps.host_runs = cut_into_runs(tiles.host, run_steps);
  std::vector<DotRun> runs = steps.host_runs;
  runs.push_back({});
  steps.runs = cuda::to_device(std::span<const DotRun>(runs), place);
  steps.masks = step_masks(tiles, place);
  steps.places = run_places(*cuda::device_rows(graph, place), tiles.columns, steps.runs, place);
  steps.columns = std::move(tiles.columns);
  return steps;
}

}  // namespace

std::shared_ptr<const DeviceDotSteps> device_dot_steps(const Graph& graph, int run_steps,
                                                       const Place& place) {
  return cuda::kept_with<DeviceDotSteps>(graph,
                                         fmt::format("runs of {} steps of 16 rows", run_steps),
                                         place, [&] { return made(graph, run_steps, place); });
}

}  // namespace tessera::ops
