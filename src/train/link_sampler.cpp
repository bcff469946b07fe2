// SPDX-License-Identifier: Apache-2.0
#include "train/link_sampler.hpp"

#include <vector>

#include "tessera/graph/build.hpp"

namespace tessera::train {

Graph between_kinds(const Graph& graph, VertexId num_sources) {
  std::vector<VertexId> rows, cols;
  for (VertexId target = num_sources; target < graph.num_rows(); ++target) {
    for (const VertexId source : graph.neighbours(target)) {
      rows.push_back(target - num_sources);
      cols.push_back(source);
    }
  }
  return from_coo(graph.num_rows() - num_sources, num_sources, rows, cols);
}

LinkSampler::LinkSampler(const Graph& known, VertexId num_sources)
    : first_target_(num_sources),
      sampler_(num_sources == 0 ? known : between_kinds(known, num_sources)) {}

links::Pairs LinkSampler::draw(const links::Pairs& positives,
                               const links::NegativeOptions& options) const {
  links::Pairs drawn = sampler_.draw(positives, options);
  for (VertexId& target : drawn.targets) target += first_target_;
  return drawn;
}

ops::NonEdges non_edges_of(const Graph& known, VertexId num_sources, const Place& place) {
  if (num_sources == 0) return ops::NonEdges(known, place);
  return ops::NonEdges(between_kinds(known, num_sources), place, num_sources);
}

}  // namespace tessera::train
