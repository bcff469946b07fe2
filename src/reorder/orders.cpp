// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/orders.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/reorder/layout.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"
#include "reorder/level_search.hpp"

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

std::string names_of_methods() {
  std::string names;
  for (const Method& method : all_methods) {
    if (!names.empty()) names += ", ";
    names += method.name;
  }
  return names;
}

}  // namespace

Permutation by_degree(const Graph& graph) {
  return Permutation(sorted_by_degree(undirected(graph), std::greater<>()));
}

Permutation bfs(const Graph& graph) {
  const Graph both_ways = undirected(graph);
  detail::LevelSearch search(both_ways);
  for (const VertexId start : sorted_by_degree(both_ways, std::greater<>())) {
    search.append_breadth_first(start, detail::NeighbourOrder::by_id);
  }
  return Permutation(std::move(search).order());
}

Permutation rcm(const Graph& graph) {
  const Graph both_ways = undirected(graph);
  detail::LevelSearch search(both_ways);
  for (const VertexId start : sorted_by_degree(both_ways, std::less<>())) {
    if (search.is_placed(start)) continue;
    search.append_breadth_first(search.pseudo_peripheral_vertex(start),
                                detail::NeighbourOrder::by_degree);
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
  const auto found = std::find_if(std::begin(all_methods), std::end(all_methods),
                                  [&](const Method& known) { return known.name == method; });
  if (found == std::end(all_methods)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("unknown method '{}'", method), "reorder",
                "use one of " + names_of_methods());
  }
  report(progress, "ordering vertices", 0, graph.num_rows());
  Permutation permutation = found->run(graph, seed, progress);
  report(progress, "ordering vertices", graph.num_rows(), graph.num_rows());
  return permutation;
}

}  // namespace tessera::reorder
