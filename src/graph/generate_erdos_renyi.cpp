// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/graph/generate.hpp"

#include "graph/draw.hpp"

namespace tessera::generate {

Graph build(const ErdosRenyi& parameters, const Progress& progress) {
  constexpr const char* model = "erdos_renyi";
  const auto [vertices, edges, symmetric, seed] = parameters;
  require(vertices >= 0, model, fmt::format("negative number of vertices {}", vertices));
  require(edges >= 0, model, fmt::format("negative number of edges {}", edges));
  const std::uint64_t pairs = num_pairs(static_cast<std::uint64_t>(vertices));
  require(static_cast<std::uint64_t>(edges) <= 2 * pairs, model,
          fmt::format("{} edges do not fit {} vertices", edges, vertices),
          fmt::format("use at most {}", 2 * pairs));

  const PairSample sample(pairs, !symmetric, Random(seed, draw_edges), nth_pair);
  return graph_of_draws(vertices, vertices, symmetric ? edges / 2 : edges, symmetric, progress,
                        sample);
}

}  // namespace tessera::generate
