// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::train {

/// These vertices, each once, and then those that lie at most so many edges before them. The graph
/// lies in memory of this process.
std::vector<VertexId> neighbourhood(const Graph& graph, std::span<const VertexId> vertices,
                                    std::int64_t hops);

}  // namespace tessera::train
