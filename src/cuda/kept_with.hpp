// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/kept.hpp"
#include "graph/access.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::cuda {

/// Under which name a graph keeps something that was made in a place: by the place's memory, since
/// what comes from one resource is of no use to those who gave another.
inline std::string kept_key(const std::string& what, const Place& place) {
  return what + " on " + to_string(place.device) + " of memory " +
         std::to_string(reinterpret_cast<std::uintptr_t>(&place.resource()));
}

/// What `make` makes of a graph's structure, queued on the place's stream by the first who asks,
/// then kept with the graph for as long as somebody uses it.
template <class T, class Make>
std::shared_ptr<const T> kept_with(const Graph& graph, const std::string& what, const Place& place,
                                   Make&& make) {
  const auto made = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<const Kept<T>>(make(), place);
  };
  return Kept<T>::use(std::static_pointer_cast<const Kept<T>>(detail::GraphAccess::derived(
                          graph, kept_key(what, place), made, Keeping::for_users)),
                      place.stream);
}

}  // namespace tessera::cuda
