// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/catalogue.hpp"
#include "tessera/core/progress.hpp"
#include "tessera/reorder/permutation.hpp"

/// Orders of the vertices that place neighbours near each other. Each takes a square graph, ignores
/// direction, and is the same for any number of threads.
namespace tessera::reorder {

/// Highest degree first; ties keep their order.
Permutation by_degree(const Graph& graph);

/// Reverse Cuthill-McKee: narrow bandwidth. Starts each component at a pseudo-peripheral vertex.
Permutation rcm(const Graph& graph);

/// Breadth-first from the vertex of highest degree of each component.
Permutation bfs(const Graph& graph);

/// What `compute` knows by name: degree, rcm, bfs, loa, communities, bisection, layout,
/// random.
std::vector<CatalogueEntry> methods();
Permutation compute(const std::string& method, const Graph& graph, std::uint64_t seed = 1,
                    const Progress& progress = {});

}  // namespace tessera::reorder
