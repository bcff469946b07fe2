// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/side_stream.hpp"
#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/sample/neighbours.hpp"

/// Samples drawn on a GPU are those drawn on the CPU.
namespace tessera::sample {
namespace {

using testing::expect_error;
using testing::random_graph;
using testing::star_graph;
using Vertices = std::vector<VertexId>;

constexpr Device gpu{DeviceKind::cuda, 0};

class NeighboursOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

Vertices range(VertexId begin, VertexId end) {
  Vertices all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

void expect_equal(const NeighbourSample& a, const NeighbourSample& b) {
  EXPECT_EQ(a.vertices_until, b.vertices_until);
  EXPECT_EQ(a.edges_until, b.edges_until);
  EXPECT_EQ(a.vertices.here(), b.vertices.here());
  EXPECT_EQ(a.trees.here(), b.trees.here());
  EXPECT_EQ(a.edges.here(), b.edges.here());
  EXPECT_EQ(a.layers, b.layers);
}

/// Draws on both, twice on the GPU.
void compare(const Graph& graph, NeighbourOptions options, const Vertices& seeds,
             const std::vector<std::int64_t>& seed_times = {}) {
  const NeighbourSample here = NeighbourSampler(graph, options).draw(seeds, 3, seed_times);
  options.device = gpu;
  const NeighbourSampler sampler(graph, options);
  for (int i = 0; i < 2; ++i) {
    const NeighbourSample there = sampler.draw(seeds, 3, seed_times);
    expect_equal(here, there);
    for (const Graph& layer : there.layers) {
      EXPECT_EQ(layer.device(), gpu);
      layer.validate();
    }
  }
}

TEST_F(NeighboursOnDevice, OfLargeBatches) {
  const Graph graph = generate::build(generate::Rmat{.scale = 15, .edges = 1000000});
  std::vector<float> weights;
  std::vector<std::int64_t> times;
  for (EdgeOffset k = 0; k < graph.num_edges(); ++k) {
    weights.push_back(static_cast<float>(k % 5));
    times.push_back(k % 1000);
  }
  const Vertices seeds = range(0, 2000);
  const std::vector<std::int64_t> seed_times(seeds.size(), 700);
  for (const bool weighted : {false, true}) {
    for (const bool disjoint : {false, true}) {
      for (const bool replace : {false, true}) {
        NeighbourOptions options{.fan_outs = {15, 10, 5}, .replace = replace, .seed = 3};
        if (weighted) options.edge_weights = weights;
        options.disjoint = disjoint;
        if (disjoint) options.edge_times = times;
        compare(graph, options, seeds, disjoint ? seed_times : std::vector<std::int64_t>{});
      }
    }
  }
}

TEST_F(NeighboursOnDevice, OfHops) {
  const Graph graph = generate::build(generate::Rmat{.scale = 13, .edges = 80000});
  using FanOuts = std::vector<std::int64_t>;
  // Those that are foreseen, those that are counted first, and both in any order.
  for (const FanOuts& fan_outs :
       {FanOuts{-1}, FanOuts{0}, FanOuts{-1, -1}, FanOuts{3, -1, 2}, FanOuts{-1, 3, -1, 2},
        FanOuts{0, -1}, FanOuts{-1, 0, 5}, FanOuts{1 << 30, 2}, FanOuts{2, 1 << 30},
        FanOuts{5, 5, 5, 5, 5, 5, 5}, FanOuts{33, 17}, FanOuts{100, 40}}) {
    compare(graph, {.fan_outs = fan_outs}, range(0, 300));
    compare(graph, {.fan_outs = fan_outs, .disjoint = true}, range(0, 40));
  }
}

TEST_F(NeighboursOnDevice, OfAHub) {
  const Graph hub = star_graph(1000000);
  const std::vector<float> weights(static_cast<std::size_t>(hub.num_edges()), 0.5f);
  for (const std::int64_t fan_out : {-1, 0, 1, 10, 1000, 1000000}) {
    compare(hub, {.fan_outs = {fan_out, 1}}, {0, 5, 0});
  }
  for (const std::int64_t fan_out : {1, 30}) {
    compare(hub, {.fan_outs = {fan_out}, .edge_weights = weights}, {0, 5, 0});
  }
  compare(hub, {.fan_outs = {10000}, .replace = true}, {0});
}

TEST_F(NeighboursOnDevice, OfOddBatches) {
  const Graph graph = random_graph(30, 30, 500, 7);
  compare(graph, {.fan_outs = {3, 2}}, {});
  compare(graph, {.fan_outs = {3, 2}}, {5, 5, 8, 5});
  compare(graph, {.fan_outs = {3, 2}, .disjoint = true}, {5, 5, 8, 5});
  Vertices many;
  for (VertexId i = 0; i < 1000; ++i) many.push_back(i % 7);
  compare(graph, {.fan_outs = {-1, -1}}, many);
  compare(Graph(), {.fan_outs = {5, 5}}, {});
  compare(from_coo(4, 4, {}, {}), {.fan_outs = {3, -1}}, {2, 0});
  compare(from_coo(3, 3, Vertices{0}, Vertices{1}), {.fan_outs = {2, 2}, .replace = true}, {2, 0});
  const Graph repeated = from_coo(2, 2, Vertices{0, 0, 0, 0}, Vertices{0, 1, 1, 1}, {},
                                  {.duplicates = Duplicates::keep});
  for (const std::int64_t fan_out : {-1, 1, 2, 3}) {
    compare(repeated, {.fan_outs = {fan_out, 2}}, {0, 1});
  }
}

TEST_F(NeighboursOnDevice, OfAGraphThatLiesThere) {
  const Graph graph = random_graph(200, 200, 3000, 9);
  const Graph there = in_place(graph, Place(gpu));
  const Vertices seeds = range(10, 60);
  const NeighbourSample expected = NeighbourSampler(graph, {.fan_outs = {4, 3}}).draw(seeds, 1);
  for (const EdgeMemory memory : {EdgeMemory::device, EdgeMemory::host}) {
    NeighbourOptions options{.fan_outs = {4, 3}, .device = gpu};
    options.edge_memory = memory;
    expect_equal(expected, NeighbourSampler(there, options).draw(seeds, 1));
  }
}

TEST_F(NeighboursOnDevice, OfAnyThreadAndStream) {
  const Graph graph = generate::build(generate::Rmat{.scale = 12, .edges = 60000});
  const SideStream stream(gpu);
  NeighbourOptions options{.fan_outs = {8, 4}};
  const NeighbourSampler here(graph, options);
  options.device = gpu;
  options.stream = stream;
  const NeighbourSampler there(graph, options);
  std::vector<std::thread> threads;
  std::vector<NeighbourSample> samples(8);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    threads.emplace_back([&, i] { samples[i] = there.draw(range(0, 500), i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    expect_equal(here.draw(range(0, 500), i), samples[i]);
  }
}

TEST_F(NeighboursOnDevice, RefuseWhatCannotBeMeant) {
  const Graph graph = random_graph(5, 5, 12, 9);
  NeighbourOptions options{.fan_outs = {1}, .device = gpu};
  expect_error(ErrorCode::invalid_argument, {"seed 5", "5 vertices"}, [&] {
    NeighbourSampler(graph, options).draw(Vertices{0, 5});
  });
  options.induced = true;
  expect_error(ErrorCode::unsupported, {"induced"}, [&] { NeighbourSampler(graph, options); });
}

TEST(NeighboursWithoutAGpu, AreRefusedOnOne) {
  if (num_gpus() > 0) GTEST_SKIP() << "there is a GPU";
  const Graph graph = random_graph(5, 5, 12, 9);
  expect_error(ErrorCode::backend_unavailable, {"cuda:0"},
               [&] { NeighbourSampler(graph, {.fan_outs = {1}, .device = gpu}); });
}

}  // namespace
}  // namespace tessera::sample
