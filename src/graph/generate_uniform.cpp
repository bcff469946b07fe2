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

Graph build(const Bipartite& parameters, const Progress& progress) {
  constexpr const char* model = "bipartite";
  const auto [targets, sources, edges, seed] = parameters;
  require(targets >= 0, model, fmt::format("negative number of targets {}", targets));
  require(sources >= 0, model, fmt::format("negative number of sources {}", sources));
  require(edges >= 0, model, fmt::format("negative number of edges {}", edges));
  const auto columns = static_cast<std::uint64_t>(sources);
  const std::uint64_t area = static_cast<std::uint64_t>(targets) * columns;
  require(static_cast<std::uint64_t>(edges) <= area, model,
          fmt::format("{} edges do not fit {} targets and {} sources", edges, targets, sources),
          fmt::format("use at most {}", area));

  const IndexShuffle order(area, Random(seed, draw_edges));
  return graph_of_draws(targets, sources, edges, false, progress, [&](std::uint64_t k) {
    const std::uint64_t cell = order(k);
    return Entry{static_cast<VertexId>(cell / columns), static_cast<VertexId>(cell % columns)};
  });
}

}  // namespace tessera::generate
