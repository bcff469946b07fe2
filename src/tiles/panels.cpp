// SPDX-License-Identifier: Apache-2.0
#include "tiles/panels.hpp"

#include <memory>
#include <vector>

#include "graph/access.hpp"

namespace tessera::tiles {
namespace {

constexpr const char* key = "reuse in panels";

struct Reuse {
  double factor = 1;
};

std::shared_ptr<const void> reuse_of(EdgeOffset edges, EdgeOffset distinct) {
  return std::make_shared<Reuse>(
      Reuse{distinct > 0 ? static_cast<double>(edges) / static_cast<double>(distinct) : 1.0});
}

std::shared_ptr<const void> measured(const Graph& graph) {
  EdgeOffset edges = 0;
  EdgeOffset distinct = 0;
  std::vector<VertexId> sources;
  for (VertexId i = 0; i < sampled_panels; ++i) {
    const auto row =
        static_cast<VertexId>(std::int64_t{graph.num_rows()} * (2 * i + 1) / (2 * sampled_panels));
    const EdgeOffset begin = graph.row_offsets()[row];
    const EdgeOffset end = panel_end(graph, begin, row);
    sources.assign(graph.col_indices().data() + begin, graph.col_indices().data() + end);
    std::sort(sources.begin(), sources.end());
    edges += end - begin;
    distinct += std::unique(sources.begin(), sources.end()) - sources.begin();
  }
  return reuse_of(edges, distinct);
}

}  // namespace

double panel_reuse(const Graph& graph) {
  if (graph.num_rows() == 0) return 1;
  return std::static_pointer_cast<const Reuse>(
             detail::GraphAccess::derived(graph, key, [&] { return measured(graph); }))
      ->factor;
}

void know_panels(const Graph& graph, EdgeOffset edges, EdgeOffset distinct_sources) {
  detail::GraphAccess::derived(graph, key, [&] { return reuse_of(edges, distinct_sources); });
}

}  // namespace tessera::tiles
