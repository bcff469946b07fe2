// SPDX-License-Identifier: Apache-2.0
#include "graph/weight_sizes.hpp"

#include "graph/access.hpp"

namespace tessera {

std::string weight_sizes_key(const float* there) {
  return "sizes of weights at " + std::to_string(reinterpret_cast<std::uintptr_t>(there));
}

SizeRange weight_sizes(const Graph& graph, const PlacedArray<float>& weights) {
  if (weights.device().kind != DeviceKind::cpu) {
    const std::string key = weight_sizes_key(weights.there(weights.place().stream).data());
    if (const auto known = detail::GraphAccess::known(graph, key)) {
      return *std::static_pointer_cast<const SizeRange>(known);
    }
  }
  return sizes_of(weights.here().span());
}

}  // namespace tessera
