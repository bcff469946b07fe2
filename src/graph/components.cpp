// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/stats.hpp"

#include "graph/requirements.hpp"

namespace tessera {
namespace {

/// Union-find that any number of threads may use at once. A root is always linked below a lower
/// one, so each set ends with its lowest vertex as root, whatever the order of the unions.
class DisjointSets {
 public:
  explicit DisjointSets(std::int64_t size) : parents_(static_cast<std::size_t>(size)) {
    std::iota(parents_.begin(), parents_.end(), VertexId{0});
  }

  VertexId root(VertexId vertex) {
    for (;;) {
      const VertexId parent = load(vertex);
      const VertexId grandparent = load(parent);
      if (parent == grandparent) return parent;
      // Path halving. Losing this race is harmless: the other thread's link is no worse.
      VertexId expected = parent;
      at(vertex).compare_exchange_weak(expected, grandparent, std::memory_order_relaxed);
      vertex = grandparent;
    }
  }

  void unite(VertexId a, VertexId b) {
    for (;;) {
      a = root(a);
      b = root(b);
      if (a == b) return;
      if (a < b) std::swap(a, b);
      VertexId expected = a;
      if (at(a).compare_exchange_strong(expected, b, std::memory_order_relaxed)) return;
    }
  }

 private:
  std::atomic_ref<VertexId> at(VertexId vertex) {
    return std::atomic_ref<VertexId>(parents_[static_cast<std::size_t>(vertex)]);
  }
  VertexId load(VertexId vertex) { return at(vertex).load(std::memory_order_relaxed); }

  std::vector<VertexId> parents_;
};

}  // namespace

std::vector<VertexId> connected_components(const Graph& graph) {
  detail::require_whole(graph);
  const std::int64_t first_col = graph.is_square() ? 0 : graph.num_rows();
  const std::int64_t size = first_col + graph.num_cols();
  if (size > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} targets and sources together exceed 2^31 - 1 vertices", size),
                "connected components");
  }
  DisjointSets sets(size);
  parallel_for(graph.num_rows(), even_grain(graph.num_rows(), 64), [&](std::int64_t index) {
    const auto row = static_cast<VertexId>(index);
    for (const VertexId col : graph.neighbours(row)) {
      sets.unite(row, static_cast<VertexId>(first_col + col));
    }
  });
  std::vector<VertexId> labels(static_cast<std::size_t>(size));
  VertexId next_label = 0;
  for (VertexId vertex = 0; vertex < size; ++vertex) {
    const VertexId root = sets.root(vertex);
    labels[static_cast<std::size_t>(vertex)] =
        root == vertex ? next_label++ : labels[static_cast<std::size_t>(root)];
  }
  return labels;
}

}  // namespace tessera
