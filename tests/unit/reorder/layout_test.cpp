// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/layout.hpp"
#include "tessera/reorder/orders.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/generate.hpp"
#include "tessera/reorder/orders.hpp"

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::expect_error;

/// Algorithm 4 as HyGNN's paper has it, with sets, one candidate after the other.
std::vector<VertexId> loa_as_printed(const Graph& graph, std::size_t vertex_window) {
  const VertexId rows = graph.num_rows();
  const auto neighbours = [&](VertexId v) {
    const auto span = graph.neighbours(v);
    return std::set<VertexId>(span.begin(), span.end());
  };
  std::vector<VertexId> sorted;
  for (VertexId v = 0; v < rows; ++v) sorted.push_back(v);
  std::stable_sort(sorted.begin(), sorted.end(), [&](VertexId a, VertexId b) {
    const auto first = [&](VertexId v) {
      return graph.degree(v) == 0 ? rows : *neighbours(v).begin();
    };
    return first(a) < first(b);
  });
  std::vector<VertexId> order;
  std::set<VertexId> visited;
  for (std::size_t start = 0; start < sorted.size(); ++start) {
    if (visited.contains(sorted[start])) continue;
    std::set<VertexId> columns = neighbours(sorted[start]);
    double elements = static_cast<double>(columns.size());
    order.push_back(sorted[start]);
    visited.insert(sorted[start]);
    for (int i = 1; i <= 15; ++i) {
      VertexId best = -1;
      double most = -1;
      for (std::size_t j = start; j < std::min(sorted.size(), start + vertex_window); ++j) {
        const VertexId v = sorted[j];
        if (visited.contains(v)) continue;
        std::set<VertexId> with = columns;
        with.merge(neighbours(v));
        const double intensity = with.empty() ? 0
                                              : (elements + static_cast<double>(graph.degree(v))) /
                                                    static_cast<double>(with.size());
        const bool higher = best >= 0 && graph.degree(v) > graph.degree(best);
        if (intensity > most || (intensity == most && higher)) {
          most = intensity;
          best = v;
        }
      }
      if (best < 0) break;
      columns.merge(neighbours(best));
      elements += static_cast<double>(graph.degree(best));
      order.push_back(best);
      visited.insert(best);
    }
  }
  return order;
}

Graph drawn(VertexId vertices, int edges, std::uint64_t seed) {
  const Graph directed = testing::random_graph(vertices, vertices, edges, seed);
  std::vector<std::pair<VertexId, VertexId>> pairs;
  for (const auto& [place, weight] : testing::entries_of(directed)) pairs.push_back(place);
  return testing::undirected_graph(vertices, pairs);
}

TEST(Loa, FollowsThePaper) {
  for (const VertexId vertices : {1, 15, 16, 17, 31, 33, 200}) {
    for (const int window : {16, 17, 40, 256}) {
      for (const std::uint64_t seed : {1u, 2u, 3u}) {
        SCOPED_TRACE(::testing::Message()
                     << vertices << " vertices, vertex window " << window << ", seed " << seed);
        const Graph graph = drawn(vertices, 3 * vertices, seed);
        const Permutation order = reorder::loa(graph, {window, {}});
        EXPECT_EQ(std::vector<VertexId>(order.new_to_old().begin(), order.new_to_old().end()),
                  loa_as_printed(graph, static_cast<std::size_t>(window)));
      }
    }
  }
}

TEST(Loa, RefusesWindowsThatCannotBeFilled) {
  expect_error(ErrorCode::invalid_argument, {"a vertex window of 15", "at least 16"}, [] {
    reorder::loa(testing::path_graph(5), {15, {}});
  });
}

TEST(Loa, ReportsEveryRangeOfVertices) {
  std::int64_t last = 0, total = 0;
  reorder::LoaOptions options;
  options.progress = [&](std::string_view, std::int64_t done, std::int64_t all) {
    last = std::max(last, done);
    total = all;
  };
  reorder::loa(testing::path_graph(40000), options);
  EXPECT_EQ(last, 40000);
  EXPECT_EQ(total, 40000);
}

Graph dense_communities() {
  return generate::build(generate::BlockModel{
      .vertices = 2000, .communities = 100, .mean_degree = 12, .inside = 1, .seed = 5});
}

TEST(Communities, FindsThoseThatWereShuffled) {
  const Graph graph = dense_communities();
  const double as_made = reorder::computing_intensity(graph, Permutation::identity(2000));
  const Graph shuffled = permuted(graph, Permutation::random(2000, 7));
  EXPECT_LT(reorder::computing_intensity(shuffled, Permutation::identity(2000)), 0.3 * as_made);
  EXPECT_GT(reorder::computing_intensity(shuffled, reorder::communities(shuffled)), 0.9 * as_made);
}

TEST(Bisection, FindsCommunitiesThatWereShuffled) {
  const Graph graph = dense_communities();
  const double as_made = reorder::computing_intensity(graph, Permutation::identity(2000));
  const Graph shuffled = permuted(graph, Permutation::random(2000, 7));
  EXPECT_GT(reorder::computing_intensity(shuffled, reorder::bisection(shuffled)), 0.8 * as_made);
}

TEST(Bisection, GivesEveryCliqueAWindow) {
  constexpr VertexId vertices = 8 * 64;
  std::vector<VertexId> rows, cols;
  for (VertexId i = 0; i < vertices; ++i) {
    for (VertexId j = i / 64 * 64; j < (i / 64 + 1) * 64; ++j) {
      rows.push_back(i);
      cols.push_back(j);
    }
  }
  const Graph graph = permuted(from_edges(vertices, rows, cols), Permutation::random(vertices, 3));
  const auto intensity = [&](const Permutation& order) {
    return reorder::computing_intensity(graph, order, reorder::layout_window);
  };
  EXPECT_LT(intensity(Permutation::identity(vertices)), 10);
  EXPECT_DOUBLE_EQ(intensity(reorder::bisection(graph)), 64);
}

TEST(Bisection, LeavesRowsThatShareNothing) {
  std::vector<VertexId> loops(1000);
  std::iota(loops.begin(), loops.end(), 0);
  EXPECT_TRUE(reorder::bisection(from_edges(1000, loops, loops)).is_identity());
}

TEST(Bisection, TakesEdgesThatRepeatOneWay) {
  // Column 1 is used a hundred times by row 0, which vertex 1 has once.
  std::vector<VertexId> rows(100, 0), cols(100, 1);
  for (VertexId v = 1; v < 40; ++v) {
    rows.push_back(v);
    cols.push_back(0);
    rows.push_back(0);
    cols.push_back(v);
  }
  BuildOptions options;
  options.duplicates = Duplicates::keep;
  const Graph graph = from_coo(40, 40, rows, cols, {}, options);
  EXPECT_EQ(reorder::bisection(graph).size(), 40);
}

TEST(Bisection, ReportsEveryRow) {
  std::int64_t last = 0, total = 0;
  reorder::bisection(testing::path_graph(5003),
                     [&](std::string_view, std::int64_t done, std::int64_t all) {
                       last = std::max(last, done);
                       total = all;
                     });
  EXPECT_EQ(last, 5003);
  EXPECT_EQ(total, 5003);
}

TEST(ComputingIntensity, IsEdgesOverDistinctColumnsOfWindows) {
  // Two windows of 16 rows: a clique of 16 vertices, then 16 vertices with a loop each.
  std::vector<VertexId> rows, cols;
  for (VertexId i = 0; i < 16; ++i) {
    for (VertexId j = 0; j < 16; ++j) {
      rows.push_back(i);
      cols.push_back(j);
    }
    rows.push_back(16 + i);
    cols.push_back(16 + i);
  }
  const Graph graph = from_edges(32, rows, cols);
  EXPECT_DOUBLE_EQ(reorder::computing_intensity(graph, Permutation::identity(32)), 272.0 / 32);
  EXPECT_EQ(reorder::computing_intensity(Graph(), Permutation()), 0);
}

TEST(BestLayout, KeepsAnOrderThatNothingBeats) {
  // Cliques of 16, four to a window, cannot be denser.
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId clique = 0; clique < 10; ++clique) {
    for (VertexId i = 0; i < 16; ++i) {
      for (VertexId j = i; j < 16; ++j) edges.emplace_back(16 * clique + i, 16 * clique + j);
    }
  }
  const reorder::Layout layout = reorder::best_layout(testing::undirected_graph(160, edges));
  EXPECT_EQ(layout.method, "none");
  EXPECT_TRUE(layout.order.is_identity());
  EXPECT_EQ(layout.intensity_after, layout.intensity_before);
}

TEST(BestLayout, IsAsDenseAsEachOfItsOrders) {
  const Graph graph = permuted(dense_communities(), Permutation::random(2000, 9));
  const reorder::Layout layout = reorder::best_layout(graph);
  const auto intensity = [&](const Permutation& order) {
    return reorder::computing_intensity(graph, order, reorder::layout_window);
  };
  EXPECT_DOUBLE_EQ(layout.intensity_after, intensity(layout.order));
  for (const Permutation& order :
       {reorder::loa(graph), reorder::communities(graph), reorder::rcm(graph)}) {
    EXPECT_GE(layout.intensity_after, intensity(order));
  }
  EXPECT_GT(layout.intensity_after, layout.intensity_before);
}

}  // namespace
}  // namespace tessera
