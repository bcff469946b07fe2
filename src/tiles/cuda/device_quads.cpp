// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_quads.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"

namespace tessera::tiles {

std::shared_ptr<const DeviceQuads> device_quads(const Graph& graph, int height, Side side,
                                                const Place& place) {
  const auto make = [&] {
    DeviceQuads quads;
    quads.host = translate_quads(graph, height, side);
    Buffer<EdgeOffset> half_steps(quads.host.step_offsets.size());
    std::transform(quads.host.step_offsets.begin(), quads.host.step_offsets.end(),
                   half_steps.begin(), [](EdgeOffset step) { return 2 * step; });
    quads.half_step_offsets = std::move(half_steps);
    quads.columns = cuda::to_device(quads.host.columns.span(), place);
    quads.words = cuda::to_device(quads.host.words.span(), place);
    quads.host.columns = {};
    quads.host.words = {};
    return quads;
  };
  return cuda::kept_with<DeviceQuads>(
      graph, fmt::format("{} 2:4 tiles of {} rows", to_string(side), height), place, make);
}

}  // namespace tessera::tiles
