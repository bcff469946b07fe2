// SPDX-License-Identifier: Apache-2.0
#include "train/neighbourhood.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::train {

std::vector<VertexId> neighbourhood(const Graph& graph, std::span<const VertexId> vertices,
                                    std::int64_t hops) {
  std::vector<VertexId> found;
  std::vector<bool> is_found(static_cast<std::size_t>(graph.num_rows()));
  const auto add = [&](VertexId vertex) {
    if (is_found[static_cast<std::size_t>(vertex)]) return;
    is_found[static_cast<std::size_t>(vertex)] = true;
    found.push_back(vertex);
  };
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (vertices[i] < 0 || vertices[i] >= graph.num_rows()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("vertex {} is outside [0, {})", vertices[i], graph.num_rows()),
                  fmt::format("position {}", i), "give vertices of the graph");
    }
    add(vertices[i]);
  }
  std::size_t begin = 0;
  for (std::int64_t hop = 0; hop < hops && begin < found.size(); ++hop) {
    const std::size_t end = found.size();
    for (; begin < end; ++begin) {
      for (const VertexId source : graph.neighbours(found[begin])) add(source);
    }
  }
  return found;
}

}  // namespace tessera::train
