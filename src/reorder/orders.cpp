// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/orders.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/reorder/layout.hpp"

#include "core/names.hpp"
#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera::reorder {
namespace {

Graph undirected(const Graph& graph) {
  tessera::detail::require_square(graph, "reordering");
  return tessera::detail::undirected(graph);
}

/// All vertices, sorted by degree; equal ones by id.
template <class Before>
std::vector<VertexId> sorted_by_degree(const Graph& graph, Before&& before) {
  std::vector<VertexId> vertices(static_cast<std::size_t>(graph.num_rows()));
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  std::stable_sort(vertices.begin(), vertices.end(), [&](VertexId a, VertexId b) {
    return before(graph.degree(a), graph.degree(b));
  });
  return vertices;
}

enum class NeighbourOrder { by_id, by_degree };

/// Breadth-first searches over a graph whose edges go both ways. Vertices are placed component by
/// component; a search that places none leaves no trace.
class LevelSearch {
 public:
  explicit LevelSearch(const Graph& graph);

  bool is_placed(VertexId vertex) const { return placed_[static_cast<std::size_t>(vertex)] != 0; }

  /// Places all vertices that `start` reaches, near ones first; nothing if `start` is placed.
  void append_breadth_first(VertexId start, NeighbourOrder neighbours);

  /// A vertex of the component of `start` that is (nearly) as far from others as any (George and
  /// Liu, 1979): again and again a vertex of lowest degree of the last level, while that adds
  /// levels.
  VertexId pseudo_peripheral_vertex(VertexId start);

  /// All vertices in the order they were placed.
  std::vector<VertexId> order() && { return std::move(order_); }

 private:
  struct Levels {
    std::int64_t count = 0;
    VertexId last_vertex = 0;  ///< of lowest degree in the last level, of equals the lowest
  };
  Levels levels_from(VertexId root);

  const Graph& graph_;
  std::vector<std::uint8_t> placed_;
  std::vector<VertexId> order_;
  std::vector<std::uint32_t> seen_in_;  ///< the last search that saw each vertex
  std::uint32_t search_ = 0;
  std::vector<VertexId> queue_;
};

LevelSearch::LevelSearch(const Graph& graph)
    : graph_(graph), placed_(static_cast<std::size_t>(graph.num_rows())), seen_in_(placed_.size()) {
  order_.reserve(placed_.size());
}

void LevelSearch::append_breadth_first(VertexId start, NeighbourOrder neighbours) {
  if (is_placed(start)) return;
  const auto degree_then_id = [&](VertexId a, VertexId b) {
    return std::pair{graph_.degree(a), a} < std::pair{graph_.degree(b), b};
  };
  std::size_t head = order_.size();
  const auto place = [&](VertexId vertex) {
    placed_[static_cast<std::size_t>(vertex)] = 1;
    order_.push_back(vertex);
  };
  place(start);
  while (head < order_.size()) {
    const auto first_new = static_cast<std::ptrdiff_t>(order_.size());
    for (const VertexId neighbour : graph_.neighbours(order_[head++])) {
      if (!is_placed(neighbour)) place(neighbour);
    }
    if (neighbours == NeighbourOrder::by_degree) {
      std::sort(order_.begin() + first_new, order_.end(), degree_then_id);
    }
  }
}

LevelSearch::Levels LevelSearch::levels_from(VertexId root) {
  ++search_;
  queue_.assign(1, root);
  seen_in_[static_cast<std::size_t>(root)] = search_;
  Levels levels;
  std::size_t level_begin = 0;
  while (level_begin < queue_.size()) {
    const std::size_t level_end = queue_.size();
    levels.last_vertex = queue_[level_begin];
    for (std::size_t i = level_begin; i < level_end; ++i) {
      const VertexId vertex = queue_[i];
      if (std::pair{graph_.degree(vertex), vertex} <
          std::pair{graph_.degree(levels.last_vertex), levels.last_vertex}) {
        levels.last_vertex = vertex;
      }
      for (const VertexId neighbour : graph_.neighbours(vertex)) {
        if (std::exchange(seen_in_[static_cast<std::size_t>(neighbour)], search_) != search_) {
          queue_.push_back(neighbour);
        }
      }
    }
    level_begin = level_end;
    ++levels.count;
  }
  return levels;
}

VertexId LevelSearch::pseudo_peripheral_vertex(VertexId start) {
  VertexId root = start;
  Levels levels = levels_from(root);
  for (;;) {
    const Levels farther = levels_from(levels.last_vertex);
    if (farther.count <= levels.count) return root;
    root = std::exchange(levels, farther).last_vertex;
  }
}

struct Method {
  const char* name;
  const char* summary;
  Permutation (*run)(const Graph& graph, std::uint64_t seed, const Progress& progress);
};

constexpr Method all_methods[] = {
    {"degree", "highest degree first",
     [](const Graph& graph, std::uint64_t, const Progress&) { return by_degree(graph); }},
    {"rcm", "reverse Cuthill-McKee: neighbours get near numbers, the bandwidth falls",
     [](const Graph& graph, std::uint64_t, const Progress&) { return rcm(graph); }},
    {"bfs", "breadth-first from the vertex of highest degree of each component",
     [](const Graph& graph, std::uint64_t, const Progress&) { return bfs(graph); }},
    {"loa", "row windows of 16 vertices that share neighbours, after HyGNN",
     [](const Graph& graph, std::uint64_t, const Progress& progress) {
       return loa(graph, {.progress = progress});
     }},
    {"communities", "vertices of a community together, and within it those of smaller ones",
     [](const Graph& graph, std::uint64_t, const Progress& progress) {
       return communities(graph, progress);
     }},
    {"bisection", "rows that share neighbours in the same half, and in the same half of that",
     [](const Graph& graph, std::uint64_t, const Progress& progress) {
       return bisection(graph, progress);
     }},
    {"layout",
     "the densest of loa, communities, both and rcm, bisected; the order stays where none is "
     "denser",
     [](const Graph& graph, std::uint64_t, const Progress& progress) {
       return best_layout(graph, {.progress = progress}).order;
     }},
    {"random", "any order, by the seed: destroys locality, for comparison",
     [](const Graph& graph, std::uint64_t seed, const Progress&) {
       tessera::detail::require_square(graph, "reordering");
       return Permutation::random(graph.num_rows(), seed);
     }},
};

}  // namespace

Permutation by_degree(const Graph& graph) {
  return Permutation(sorted_by_degree(undirected(graph), std::greater<>()));
}

Permutation bfs(const Graph& graph) {
  const Graph both_ways = undirected(graph);
  LevelSearch search(both_ways);
  for (const VertexId start : sorted_by_degree(both_ways, std::greater<>())) {
    search.append_breadth_first(start, NeighbourOrder::by_id);
  }
  return Permutation(std::move(search).order());
}

Permutation rcm(const Graph& graph) {
  const Graph both_ways = undirected(graph);
  LevelSearch search(both_ways);
  for (const VertexId start : sorted_by_degree(both_ways, std::less<>())) {
    if (search.is_placed(start)) continue;
    search.append_breadth_first(search.pseudo_peripheral_vertex(start), NeighbourOrder::by_degree);
  }
  std::vector<VertexId> order = std::move(search).order();
  std::reverse(order.begin(), order.end());
  return Permutation(std::move(order));
}

std::vector<CatalogueEntry> methods() {
  std::vector<CatalogueEntry> entries;
  for (const Method& method : all_methods) entries.push_back({method.name, method.summary});
  return entries;
}

Permutation compute(const std::string& method, const Graph& graph, std::uint64_t seed,
                    const Progress& progress) {
  const Method& found = find_named(all_methods, method, "method", "reorder");
  report(progress, "ordering vertices", 0, graph.num_rows());
  Permutation permutation = found.run(graph, seed, progress);
  report(progress, "ordering vertices", graph.num_rows(), graph.num_rows());
  return permutation;
}

}  // namespace tessera::reorder
