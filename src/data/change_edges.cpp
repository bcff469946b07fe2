// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/change_edges.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

/// Each edge under its own number, so that these say where it gets to.
Graph numbered(const Graph& graph) {
  Buffer<EdgeOffset> numbers(graph.num_edges());
  std::iota(numbers.begin(), numbers.end(), EdgeOffset{0});
  return graph.with_edge_ids(std::move(numbers));
}

/// Where the edges that the user listed have got to, now that each edge is at `places`.
SharedArray<EdgeOffset> moved_ids(const SharedArray<EdgeOffset>& ids,
                                  const SharedArray<EdgeOffset>& places) {
  Buffer<EdgeOffset> moved(ids.size());
  std::transform(ids.begin(), ids.end(), moved.begin(),
                 [&](EdgeOffset id) { return id < 0 ? -1 : places[id]; });
  return moved;
}

/// The place of the edge with this target and source; -1 where there is none.
EdgeOffset find_edge(const Graph& graph, VertexId target, VertexId source) {
  if (target >= graph.num_rows()) return -1;
  const auto sources = graph.neighbours(target);
  const auto found = std::lower_bound(sources.begin(), sources.end(), source);
  if (found == sources.end() || *found != source) return -1;
  return graph.row_offsets()[target] + (found - sources.begin());
}

}  // namespace

NewEdges change_edges(Dataset& dataset, FunctionRef<Graph(const Graph& graph)> change) {
  const Graph before = dataset.graph;
  if (dataset.edge_features.matrix == nullptr) {
    dataset.graph = change(before);
    return {};
  }
  const Graph after = change(numbered(before));
  const SharedArray<EdgeOffset>& places = after.edge_ids();
  if (places.size() != before.num_edges()) {
    throw Error(ErrorCode::internal, "the change lost the edge ids", "change_edges");
  }
  // Where each edge that is there now was before; -1 for those that are new.
  std::vector<EdgeOffset> origins(static_cast<std::size_t>(after.num_edges()), -1);
  for (EdgeOffset old = 0; old < places.size(); ++old) {
    if (places[old] >= 0) origins[static_cast<std::size_t>(places[old])] = old;
  }
  const Matrix<float>& features = *dataset.edge_features.matrix;
  auto moved = std::make_shared<Matrix<float>>(after.num_edges(), features.cols());
  NewEdges found;
  for (VertexId target = 0; target < after.num_rows(); ++target) {
    for (EdgeOffset e = after.row_offsets()[target]; e < after.row_offsets()[target + 1]; ++e) {
      EdgeOffset origin = origins[static_cast<std::size_t>(e)];
      if (origin < 0) {
        origin = find_edge(before, after.col_indices()[e], target);
        ++(origin < 0 ? found.zero : found.reversed);
      }
      if (origin < 0) {
        std::fill_n(moved->row(e), features.cols(), 0.0f);
      } else {
        std::copy_n(features.row(origin), features.cols(), moved->row(e));
      }
    }
  }
  dataset.edge_features.matrix = std::move(moved);
  dataset.graph = after.with_edge_ids(moved_ids(before.edge_ids(), places));
  return found;
}

}  // namespace tessera
