// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// `values[from[0]], values[from[1]], …`; nothing of an array without values.
template <class T>
SharedArray<T> gathered(const SharedArray<T>& values, std::span<const VertexId> from) {
  if (values.empty()) return {};
  Buffer<T> result(static_cast<std::int64_t>(from.size()));
  parallel_for(result.size(), even_grain(result.size()),
               [&](std::int64_t i) { result[i] = values[from[static_cast<std::size_t>(i)]]; });
  return result;
}

/// As `induced_subgraph`; that of a graph on a GPU is made in a place on the same one.
Graph induced_in(const Graph& graph, std::span<const VertexId> vertices, const Place& place);

}  // namespace tessera::detail
