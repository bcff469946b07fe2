// SPDX-License-Identifier: Apache-2.0
#include "graph/coo_access.hpp"
#include "tessera/core/device.hpp"

namespace tessera::detail {

void check_range_on_device(VertexId, VertexId, std::span<const VertexId>, std::span<const VertexId>,
                           const Place& place) {
  require_available(place.device);
}

Buffer<float> weighed_on_device(const Coo& coo) {
  require_available(coo.place().device);
  return {};
}

PlacedArray<VertexId> placed_on_device(SharedArray<VertexId>, const Place& place) {
  require_available(place.device);
  return {};
}

PlacedArray<float> placed_on_device(SharedArray<float>, const Place& place) {
  require_available(place.device);
  return {};
}

}  // namespace tessera::detail
