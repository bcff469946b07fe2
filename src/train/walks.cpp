// SPDX-License-Identifier: Apache-2.0
#include "train/walks.hpp"

#include <algorithm>

namespace tessera::train {

std::vector<VertexId> walked(const Graph& graph, std::span<const VertexId> roots,
                             std::int64_t length, const Random& random) {
  std::vector<VertexId> met(roots.begin(), roots.end());
  for (const VertexId root : roots) {
    VertexId at = root;
    for (std::int64_t step = 0; step < length; ++step) {
      const auto sources = graph.neighbours(at);
      if (sources.empty()) break;
      const Random here = random.at_step(static_cast<std::uint32_t>(step));
      at = sources[static_cast<std::size_t>(
          here.below(static_cast<std::uint64_t>(root), sources.size()))];
      met.push_back(at);
    }
  }
  std::sort(met.begin(), met.end());
  met.erase(std::unique(met.begin(), met.end()), met.end());
  return met;
}

}  // namespace tessera::train
