// SPDX-License-Identifier: Apache-2.0
#include "io/edge_arrays.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::io {
namespace {

bool is_of_edges(const std::string& name, const ExtraArray& extra, EdgeOffset edges) {
  return name.starts_with("edge_") && !extra.shape.empty() && extra.shape[0] == edges && edges > 0;
}

}  // namespace

bool has_arrays_of_edges(const Dataset& dataset, EdgeOffset edges) {
  return std::any_of(dataset.extras.begin(), dataset.extras.end(), [&](const auto& named) {
    return is_of_edges(named.first, named.second, edges);
  });
}

void sort_arrays_of_edges(const Graph& graph, EdgeOffset edges, Dataset& dataset) {
  const SharedArray<EdgeOffset>& places = graph.edge_ids();
  for (auto& [name, extra] : dataset.extras) {
    if (!is_of_edges(name, extra, edges)) continue;
    const std::int64_t row_bytes = extra.bytes.size() / edges;
    Buffer<std::byte> sorted(graph.num_edges() * row_bytes);
    for (EdgeOffset k = edges - 1; k >= 0; --k) {
      if (places[k] < 0) continue;  // dropped
      std::copy_n(extra.bytes.data() + k * row_bytes, row_bytes,
                  sorted.data() + places[k] * row_bytes);
    }
    extra.shape[0] = graph.num_edges();
    extra.bytes = std::move(sorted);
  }
}

}  // namespace tessera::io
