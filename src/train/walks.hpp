// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/random.hpp"
#include "tessera/graph/graph.hpp"

#include "train/random_use.hpp"

namespace tessera::train {

/// What the walks of one step draw with.
inline Random random_of_walks(std::uint64_t seed, std::uint64_t step) {
  return Random(Random(seed, draw_walks).bits64(step));
}

/// The vertices that walks of so many steps meet, in increasing order, each once. A walk begins at
/// each of `roots` and goes from a vertex to one of its sources; where there is none, it ends.
std::vector<VertexId> walked(const Graph& graph, std::span<const VertexId> roots,
                             std::int64_t length, const Random& random);

}  // namespace tessera::train
