// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/reorder/layout.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera::reorder {
namespace {

/// Edges between a community and others, added up.
struct Link {
  VertexId to;
  float edges;
};

/// Communities as a forest: who merged into whom.
class Communities {
 public:
  explicit Communities(const Graph& graph)
      : graph_(graph),
        merged_into_(static_cast<std::size_t>(graph.num_rows())),
        first_member_(merged_into_.size(), none),
        next_sibling_(merged_into_.size(), none),
        ends_(merged_into_.size()),
        links_(merged_into_.size()),
        edges_to_(merged_into_.size(), 0.0f),
        total_ends_(static_cast<double>(graph.num_edges())) {
    std::iota(merged_into_.begin(), merged_into_.end(), VertexId{0});
    for (std::size_t v = 0; v < ends_.size(); ++v) {
      ends_[v] = static_cast<double>(graph.degree(static_cast<VertexId>(v)));
    }
  }

  /// Merges the vertex, with all that merged into it, into the community that gains most by it.
  void merge(VertexId vertex) {
    gather_links(vertex);
    VertexId best = none;
    double best_gain = 0;
    for (const Link& link : links_[at(vertex)]) {
      const double gain =
          static_cast<double>(link.edges) - ends_[at(vertex)] * ends_[at(link.to)] / total_ends_;
      if (gain > best_gain || (gain == best_gain && best != none && link.to < best)) {
        best = link.to;
        best_gain = gain;
      }
    }
    if (best == none) return;
    merged_into_[at(vertex)] = best;
    ends_[at(best)] += ends_[at(vertex)];
    next_sibling_[at(vertex)] = std::exchange(first_member_[at(best)], vertex);
  }

  bool is_root(VertexId vertex) const { return merged_into_[at(vertex)] == vertex; }

  /// The vertex, and all that merged into it, each with its own.
  void append_members(VertexId root, std::vector<VertexId>& order) const {
    std::vector<VertexId> open{root};
    while (!open.empty()) {
      const VertexId vertex = open.back();
      open.pop_back();
      order.push_back(vertex);
      for (VertexId member = first_member_[at(vertex)]; member != none;
           member = next_sibling_[at(member)]) {
        open.push_back(member);
      }
    }
  }

 private:
  static constexpr VertexId none = -1;
  static std::size_t at(VertexId vertex) { return static_cast<std::size_t>(vertex); }

  VertexId root_of(VertexId vertex) {
    while (merged_into_[at(vertex)] != vertex) {
      VertexId& up = merged_into_[at(vertex)];
      up = merged_into_[at(up)];
      vertex = up;
    }
    return vertex;
  }

  void add(VertexId vertex, VertexId to, float edges) {
    const VertexId root = root_of(to);
    if (root == vertex) return;
    if (edges_to_[at(root)] == 0) touched_.push_back(root);
    edges_to_[at(root)] += edges;
  }

  /// What leads from a vertex, and from those that merged into it, to other communities. Links of
  /// members are not needed any more.
  void gather_links(VertexId vertex) {
    touched_.clear();
    for (const VertexId neighbour : graph_.neighbours(vertex)) add(vertex, neighbour, 1);
    for (VertexId member = first_member_[at(vertex)]; member != none;
         member = next_sibling_[at(member)]) {
      for (const Link& link : links_[at(member)]) add(vertex, link.to, link.edges);
      std::vector<Link>().swap(links_[at(member)]);
    }
    std::vector<Link>& links = links_[at(vertex)];
    links.reserve(touched_.size());
    for (const VertexId root : touched_) {
      links.push_back({root, std::exchange(edges_to_[at(root)], 0.0f)});
    }
  }

  const Graph& graph_;
  std::vector<VertexId> merged_into_;  ///< itself while it has not
  std::vector<VertexId> first_member_;
  std::vector<VertexId> next_sibling_;
  std::vector<double> ends_;  ///< of edges, over a community
  std::vector<std::vector<Link>> links_;
  std::vector<float> edges_to_;  ///< of the vertex that is merged, by root
  std::vector<VertexId> touched_;
  double total_ends_;
};

std::vector<VertexId> by_increasing_degree(const Graph& graph) {
  std::vector<VertexId> vertices(static_cast<std::size_t>(graph.num_rows()));
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  std::stable_sort(vertices.begin(), vertices.end(),
                   [&](VertexId a, VertexId b) { return graph.degree(a) < graph.degree(b); });
  return vertices;
}

}  // namespace

Permutation communities(const Graph& given, const Progress& progress) {
  constexpr std::int64_t report_every = 1 << 16;
  tessera::detail::require_square(given, "reordering");
  const Graph graph = tessera::detail::undirected(given);
  Communities found(graph);
  std::int64_t done = 0;
  for (const VertexId vertex : by_increasing_degree(graph)) {
    if (done++ % report_every == 0) report(progress, "merging", done, graph.num_rows());
    found.merge(vertex);
  }
  std::vector<VertexId> order;
  order.reserve(static_cast<std::size_t>(graph.num_rows()));
  for (VertexId vertex = 0; vertex < graph.num_rows(); ++vertex) {
    if (found.is_root(vertex)) found.append_members(vertex, order);
  }
  return Permutation(std::move(order));
}

}  // namespace tessera::reorder
