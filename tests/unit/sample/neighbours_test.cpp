// SPDX-License-Identifier: Apache-2.0
#include "tessera/sample/neighbours.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::sample {
namespace {

using testing::expect_error;
using testing::random_graph;
using testing::star_graph;
using testing::ThreadScope;

using Vertices = std::vector<VertexId>;

NeighbourSample draw(const Graph& graph, const NeighbourOptions& options, const Vertices& seeds,
                     std::uint64_t step = 0, const std::vector<std::int64_t>& seed_times = {}) {
  return NeighbourSampler(graph, options).draw(seeds, step, seed_times);
}

Vertices range(VertexId begin, VertexId end) {
  Vertices all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

void expect_equal(const NeighbourSample& a, const NeighbourSample& b) {
  EXPECT_EQ(a.vertices.here(), b.vertices.here());
  EXPECT_EQ(a.trees.here(), b.trees.here());
  EXPECT_EQ(a.vertices_until, b.vertices_until);
  EXPECT_EQ(a.edges_until, b.edges_until);
  EXPECT_EQ(a.edges.here(), b.edges.here());
  EXPECT_EQ(a.layers, b.layers);
}

TEST(Neighbours, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = generate::build(generate::Rmat{.scale = 14, .edges = 300000});
  std::vector<float> weights;
  std::vector<std::int64_t> times;
  for (EdgeOffset k = 0; k < graph.num_edges(); ++k) {
    weights.push_back(static_cast<float>(k % 5));
    times.push_back(k % 1000);
  }
  const Vertices seeds = range(0, 3000);
  const std::vector<std::int64_t> seed_times(seeds.size(), 700);
  for (const bool weighted : {false, true}) {
    for (const bool disjoint : {false, true}) {
      NeighbourOptions options{.fan_outs = {15, 10, 5}, .disjoint = disjoint, .seed = 3};
      if (weighted) options.edge_weights = weights;
      if (disjoint) options.edge_times = times;
      const auto drawn = [&](int threads, std::uint64_t step) {
        const ThreadScope scope(threads);
        return draw(graph, options, seeds, step,
                    disjoint ? seed_times : std::vector<std::int64_t>{});
      };
      const NeighbourSample one = drawn(1, 7);
      EXPECT_GT(one.edges.size(), 40000);
      expect_equal(one, drawn(2, 7));
      expect_equal(one, drawn(8, 7));
      EXPECT_NE(one.edges.here(), drawn(2, 8).edges.here());
      options.seed = 4;
      EXPECT_NE(one.edges.here(), drawn(2, 7).edges.here());
    }
  }
}

TEST(Neighbours, AreNumberedSeedsFirstThenAsTheyAppear) {
  // 0 <- {1, 2}, 1 <- {3}, 2 <- {0, 3}, 3 <- {4}
  const Graph graph = from_coo(6, 6, Vertices{0, 0, 1, 2, 2, 3}, Vertices{1, 2, 3, 0, 3, 4});
  const NeighbourSample sample = draw(graph, {.fan_outs = {-1, -1}}, {2, 5});
  EXPECT_EQ(sample.vertices.here(), (Vertices{2, 5, 0, 3, 1, 4}));
  EXPECT_EQ(sample.vertices_until, (std::vector<std::int64_t>{2, 4, 6}));
  EXPECT_EQ(sample.edges_until, (std::vector<std::int64_t>{0, 2, 5}));
  EXPECT_TRUE(sample.trees.empty());
  ASSERT_EQ(sample.layers.size(), 2u);
  const Graph& first = sample.layers[0];
  EXPECT_EQ(first, from_coo(4, 6, Vertices{0, 0, 2, 2, 3}, Vertices{2, 3, 0, 4, 5}));
  EXPECT_EQ(sample.layers[1], from_coo(2, 4, Vertices{0, 0}, Vertices{2, 3}));
  for (const Graph& layer : sample.layers) layer.validate();
}

TEST(Neighbours, ValuesAndPositionsComeAlong) {
  const Graph graph = random_graph(40, 40, 400, 5);
  const NeighbourSample sample = draw(graph, {.fan_outs = {4, 3}}, {3, 9, 1});
  const Graph& layer = sample.layers.front();
  ASSERT_TRUE(layer.has_values());
  for (VertexId row = 0; row < layer.num_rows(); ++row) {
    for (EdgeOffset k = layer.row_offsets()[row]; k < layer.row_offsets()[row + 1]; ++k) {
      EXPECT_EQ(layer.values()[k], graph.values()[sample.edges.here()[k]]);
      EXPECT_EQ(sample.vertices.here()[static_cast<std::size_t>(layer.col_indices()[k])],
                graph.col_indices()[sample.edges.here()[k]]);
    }
  }
}

TEST(Neighbours, OfAHubAreDrawnOnce) {
  const Graph hub = star_graph(1000000);
  for (const std::int64_t fan_out : {1, 10, 1000, 999999}) {
    const NeighbourSample sample = draw(hub, {.fan_outs = {fan_out}}, {0});
    EXPECT_EQ(sample.edges.size(), fan_out);
    const auto& edges = sample.edges.here();
    EXPECT_EQ(std::set(edges.begin(), edges.end()).size(), static_cast<std::size_t>(fan_out));
    sample.layers[0].validate();
  }
  const std::vector<float> weights(static_cast<std::size_t>(hub.num_edges()), 0.5f);
  const NeighbourSample weighted = draw(hub, {.fan_outs = {500}, .edge_weights = weights}, {0});
  const auto& edges = weighted.edges.here();
  EXPECT_EQ(std::set(edges.begin(), edges.end()).size(), 500u);
}

TEST(Neighbours, FanOutsOfAllNoneAndMoreThanThereAre) {
  const Graph graph = random_graph(20, 20, 90, 6);
  const Vertices seeds{4, 0, 11};
  EdgeOffset degrees = 0;
  for (const VertexId seed : seeds) degrees += graph.degree(seed);
  for (const std::int64_t fan_out : {std::int64_t{-1}, std::int64_t{20}, std::int64_t{1} << 30}) {
    EXPECT_EQ(draw(graph, {.fan_outs = {fan_out}}, seeds).edges.size(), degrees);
  }
  const NeighbourSample none = draw(graph, {.fan_outs = {0, -1}}, seeds);
  EXPECT_EQ(none.vertices.here(), seeds);
  EXPECT_EQ(none.edges.size(), 0);
  EXPECT_EQ(none.layers[0].num_rows(), 3);
  const NeighbourSample then_none = draw(graph, {.fan_outs = {-1, 0}}, seeds);
  EXPECT_EQ(then_none.edges.size(), degrees);
  EXPECT_EQ(then_none.layers[0].num_rows(), then_none.vertices.size());
  EXPECT_EQ(draw(graph, {.fan_outs = {50}, .replace = true}, seeds).edges.size(), 150);
}

TEST(Neighbours, OfAVertexWithoutAnyAreNone) {
  const Graph graph = from_coo(3, 3, Vertices{0}, Vertices{1});
  for (const bool replace : {false, true}) {
    const NeighbourSample sample = draw(graph, {.fan_outs = {2, 2}, .replace = replace}, {2, 0});
    EXPECT_EQ(sample.vertices.here(), (Vertices{2, 0, 1}));
    EXPECT_EQ(sample.layers[1].degree(0), 0);
    EXPECT_EQ(sample.layers[1].degree(1), replace ? 2 : 1);
    EXPECT_EQ(sample.layers[0].degree(2), 0);
  }
}

TEST(Neighbours, SeedsMayComeAgain) {
  const Graph graph = random_graph(30, 30, 500, 7);
  const NeighbourSample sample = draw(graph, {.fan_outs = {3}}, {5, 5, 8, 5});
  const auto& vertices = sample.vertices.here();
  EXPECT_EQ(Vertices(vertices.begin(), vertices.begin() + 4), (Vertices{5, 5, 8, 5}));
  const Graph& layer = sample.layers[0];
  EXPECT_EQ(layer.num_rows(), 4);
  EXPECT_TRUE(std::ranges::equal(layer.neighbours(0), layer.neighbours(1)));
  EXPECT_TRUE(std::ranges::equal(layer.neighbours(0), layer.neighbours(3)));
  const NeighbourSample trees = draw(graph, {.fan_outs = {3}, .disjoint = true}, {5, 5, 8, 5});
  const auto drawn_by = [&](EdgeOffset row) {
    const EdgeOffset* const first = trees.edges.here().begin() + 3 * row;
    return Vertices(first, first + 3);
  };
  EXPECT_NE(drawn_by(0), drawn_by(1));
}

TEST(Neighbours, MoreSeedsThanVertices) {
  const Graph graph = random_graph(5, 5, 20, 8);
  Vertices seeds;
  for (VertexId i = 0; i < 100; ++i) seeds.push_back(i % 5);
  const NeighbourSample sample = draw(graph, {.fan_outs = {-1, -1}}, seeds);
  EXPECT_EQ(sample.vertices.here(), seeds);
  EXPECT_EQ(sample.edges.size(), 20 * graph.num_edges());
}

TEST(Neighbours, EmptyGraphsAndBatches) {
  const NeighbourSample nothing = draw(Graph(), {.fan_outs = {5, 5}}, {});
  EXPECT_TRUE(nothing.vertices.empty());
  EXPECT_EQ(nothing.layers.size(), 2u);
  EXPECT_TRUE(draw(star_graph(3), {.fan_outs = {1}}, {}).vertices.empty());
  const Graph edgeless = from_coo(4, 4, {}, {});
  EXPECT_EQ(draw(edgeless, {.fan_outs = {3}}, {2}, 0, {9}).vertices.here(), Vertices{2});
}

TEST(Neighbours, SelfLoopsAndRepeatedEdgesAreEdges) {
  const Graph graph = from_coo(2, 2, Vertices{0, 0, 0, 0}, Vertices{0, 1, 1, 1}, {},
                               {.duplicates = Duplicates::keep});
  const NeighbourSample sample = draw(graph, {.fan_outs = {-1}}, {0});
  EXPECT_TRUE(std::ranges::equal(sample.layers[0].neighbours(0), Vertices{0, 1, 1, 1}));
  sample.layers[0].validate();
  EXPECT_EQ(draw(graph, {.fan_outs = {3}}, {0}).edges.size(), 3);
}

TEST(Neighbours, EdgesAreNotLaterThanTheSeed) {
  // 0 <- {1, 2, 3, 4} at 10, 20, 20, 30; 1 <- {5} at 15.
  const Graph graph = from_coo(6, 6, Vertices{0, 0, 0, 0, 1}, Vertices{1, 2, 3, 4, 5});
  const std::vector<std::int64_t> times{30, 20, 20, 10, 15};
  const NeighbourOptions all{.fan_outs = {-1, -1}, .disjoint = true, .edge_times = times};
  EXPECT_EQ(draw(graph, all, {0}, 0, {9}).vertices.here(), Vertices{0});
  EXPECT_EQ(draw(graph, all, {0}, 0, {10}).vertices.here(), (Vertices{0, 4}));
  EXPECT_EQ(draw(graph, all, {0}, 0, {20}).vertices.here(), (Vertices{0, 4, 2, 3}));
  EXPECT_EQ(draw(graph, all, {0}, 0, {30}).vertices.here(), (Vertices{0, 4, 2, 3, 1, 5}));
  // The time is the seed's in every hop.
  const NeighbourSample two = draw(graph, all, {1, 0, 0}, 0, {14, 20, 30});
  EXPECT_EQ(two.vertices.here(), (Vertices{1, 0, 0, 4, 2, 3, 4, 2, 3, 1, 5}));
  EXPECT_EQ(two.trees.here(), (Vertices{0, 1, 2, 1, 1, 1, 2, 2, 2, 2, 2}));
  NeighbourOptions latest = all;
  latest.fan_outs = {2};
  latest.time_strategy = TimeStrategy::latest;
  EXPECT_EQ(draw(graph, latest, {0}, 0, {29}).vertices.here(), (Vertices{0, 2, 3}));
}

TEST(Neighbours, SourcesAreNotLaterThanTheSeed) {
  const Graph graph = from_coo(4, 4, Vertices{0, 0, 0, 1}, Vertices{1, 2, 3, 3});
  const std::vector<std::int64_t> times{5, 5, 6, 1};
  const NeighbourOptions options{.fan_outs = {-1, -1}, .disjoint = true, .vertex_times = times};
  EXPECT_EQ(draw(graph, options, {0}).vertices.here(), (Vertices{0, 3, 1}));
  EXPECT_EQ(draw(graph, options, {0}, 0, {6}).vertices.here(), (Vertices{0, 3, 1, 2}));
}

TEST(Neighbours, EdgesOfWeight0AreLeftOut) {
  const Graph graph = star_graph(4);
  std::vector<float> weights(static_cast<std::size_t>(graph.num_edges()), 0.0f);
  weights[2] = 1;
  for (const std::int64_t fan_out : {-1, 1, 4}) {
    const NeighbourSample sample =
        draw(graph, {.fan_outs = {fan_out}, .edge_weights = weights}, {0});
    EXPECT_EQ(sample.vertices.here(), (Vertices{0, 3}));
    EXPECT_EQ(sample.edges.here()[0], 2);
  }
}

TEST(Neighbours, InducedGraphsHaveAllEdgesBetweenThem) {
  const Graph graph = random_graph(60, 60, 900, 12);
  const Vertices seeds{7, 1, 30};
  NeighbourOptions options{.fan_outs = {3, 2}};
  const NeighbourSample drawn = draw(graph, options, seeds);
  options.induced = true;
  const NeighbourSample induced = draw(graph, options, seeds);
  EXPECT_EQ(induced.vertices.here(), drawn.vertices.here());
  EXPECT_EQ(induced.vertices_until, drawn.vertices_until);
  ASSERT_EQ(induced.layers.size(), 2u);
  for (const Graph& layer : induced.layers) {
    EXPECT_EQ(layer, induced_subgraph(graph, induced.vertices.here()));
  }
  for (EdgeOffset k = 0; k < induced.edges.size(); ++k) {
    EXPECT_EQ(induced.layers[0].values()[k], graph.values()[induced.edges.here()[k]]);
  }
}

TEST(Neighbours, InducedGraphsKeepTreesAndTimes) {
  // A triangle of edges both ways; 0 <-> 1 at 1, 1 <-> 2 at 2, 0 <-> 2 at 3.
  const Graph graph = from_coo(3, 3, Vertices{0, 0, 1, 1, 2, 2}, Vertices{1, 2, 0, 2, 0, 1});
  const std::vector<std::int64_t> times{1, 3, 1, 2, 3, 2};
  const NeighbourOptions options{
      .fan_outs = {-1, -1}, .disjoint = true, .induced = true, .edge_times = times};
  const NeighbourSample sample = draw(graph, options, {0, 0}, 0, {1, 2});
  EXPECT_EQ(sample.vertices.here(), (Vertices{0, 0, 1, 1, 2}));
  EXPECT_EQ(sample.trees.here(), (Vertices{0, 1, 0, 1, 1}));
  EXPECT_EQ(sample.layers[0],
            from_coo(5, 5, Vertices{0, 1, 2, 3, 3, 4}, Vertices{2, 3, 0, 1, 4, 3}));
}

TEST(Neighbours, RefusesWhatCannotBeMeant) {
  const auto invalid = [](const std::vector<std::string>& parts, auto&& call) {
    expect_error(ErrorCode::invalid_argument, parts, call);
  };
  const Graph graph = random_graph(5, 5, 12, 9);
  const auto edges = static_cast<std::size_t>(graph.num_edges());
  invalid({"rectangular", "4 targets"},
          [] { NeighbourSampler(random_graph(4, 5, 9, 1), {.fan_outs = {1}}); });
  invalid({"scaled already"}, [&] {
    NeighbourSampler(gcn_normalised(random_graph(4, 4, 3, 1, false)), {.fan_outs = {1}});
  });
  invalid({"no fan-outs"}, [&] { NeighbourSampler(graph, {}); });
  invalid({"fan-out of -2"}, [&] { NeighbourSampler(graph, {.fan_outs = {3, -2}}); });
  invalid({"seed 5", "5 vertices"}, [&] { draw(graph, {.fan_outs = {1}}, {0, 5}); });
  invalid({"seed -1"}, [&] { draw(graph, {.fan_outs = {1}}, {-1}); });
  const std::vector<float> few(2, 1.0f);
  invalid({"2 edge weights"},
          [&] { NeighbourSampler(graph, {.fan_outs = {1}, .edge_weights = few}); });
  for (const float odd : {-1.0f, NAN, INFINITY}) {
    std::vector<float> weights(edges, 1.0f);
    weights[1] = odd;
    expect_error(ErrorCode::bad_data, {"edge_weights[1]"},
                 [&] { NeighbourSampler(graph, {.fan_outs = {1}, .edge_weights = weights}); });
  }
  const std::vector<std::int64_t> edge_times(edges, 0), vertex_times(5, 0);
  invalid({"not disjoint"},
          [&] { NeighbourSampler(graph, {.fan_outs = {1}, .edge_times = edge_times}); });
  invalid({"both edges and vertices"}, [&] {
    NeighbourSampler(graph, {.fan_outs = {1},
                             .disjoint = true,
                             .edge_times = edge_times,
                             .vertex_times = vertex_times});
  });
  invalid({"latest"}, [&] {
    NeighbourSampler(graph, {.fan_outs = {1}, .time_strategy = TimeStrategy::latest});
  });
  const NeighbourOptions timed{.fan_outs = {1}, .disjoint = true, .edge_times = edge_times};
  invalid({"0 times for 1 seeds"}, [&] { draw(graph, timed, {0}); });
  invalid({"2 times for 1 seeds"}, [&] { draw(graph, timed, {0}, 0, {1, 2}); });
  invalid({"without times"}, [&] { draw(graph, {.fan_outs = {1}}, {0}, 0, {1}); });
}

}  // namespace
}  // namespace tessera::sample
