// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/device_steps.hpp"

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "ops/sddmm/cuda/short/places.hpp"
#include "tessera/core/error.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

std::shared_ptr<const DeviceDotSteps> made(const Graph& graph, int run_steps, Device device) {
  tiles::DeviceTiles tiles =
      tiles::translate_on_device(graph, short_dot_rows, tiles::Side::forward, device);
  const std::int64_t num_steps = tiles.host.num_steps();
  if (num_steps > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, fmt::format("{} steps of tiles", num_steps), "tiles",
                "partition the graph");
  }
  auto steps = std::make_shared<DeviceDotSteps>();
  steps->host_runs = cut_into_runs(tiles.host, run_steps);
  std::vector<DotRun> runs = steps->host_runs;
  runs.push_back({});
  steps->runs = cuda::to_device(std::span<const DotRun>(runs), device);
  steps->masks = step_masks(tiles, device);
  steps->places = run_places(*cuda::device_rows(graph, device), tiles.columns, steps->runs, device);
  steps->columns = std::move(tiles.columns);
  return steps;
}

}  // namespace

std::shared_ptr<const DeviceDotSteps> device_dot_steps(const Graph& graph, int run_steps,
                                                       Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> { return made(graph, run_steps, device); };
  const std::string key =
      fmt::format("runs of {} steps of 16 rows on {}", run_steps, to_string(device));
  return std::static_pointer_cast<const DeviceDotSteps>(graph.derived(key, make));
}

}  // namespace tessera::ops
