// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/random_coo.hpp"
#include "support/reference_sample.hpp"
#include "tessera/sample/neighbours.hpp"

namespace tessera::sample {
namespace {

using testing::random_coo;
using testing::ReferenceSample;
using testing::ReferenceSampler;
using testing::ThreadScope;

/// A graph, seeds and options, all drawn.
struct Case {
  Graph graph;
  std::vector<VertexId> seeds;
  std::vector<float> weights;
  std::vector<std::int64_t> edge_times, vertex_times, seed_times;
  NeighbourOptions options;
};

Case drawn_case(std::uint64_t number) {
  const Random random(number, 77);
  std::uint64_t used = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(used++, bound); };
  Case drawn;
  const auto vertices = static_cast<VertexId>(std::vector{1, 2, 17, 60, 400}[below(5)]);
  const auto edges = static_cast<int>(below(static_cast<std::uint64_t>(vertices) * 25));
  const bool repeats = below(2) == 0;
  drawn.graph =
      random_coo(vertices, vertices, edges, number)
          .build({.duplicates = repeats ? Duplicates::keep : Duplicates::first}, below(2) == 0);
  for (std::uint64_t i = below(40); i > 0; --i) {
    drawn.seeds.push_back(static_cast<VertexId>(below(static_cast<std::uint64_t>(vertices))));
  }
  NeighbourOptions& options = drawn.options;
  for (std::uint64_t hop = 1 + below(4); hop > 0; --hop) {
    options.fan_outs.push_back(std::vector{-1, 0, 1, 2, 3, 5, 40, 100000}[below(8)]);
    if (options.fan_outs.back() == 100000 && below(2) == 0) options.fan_outs.back() = 7;
  }
  options.replace = below(3) == 0;
  if (options.replace) {
    for (std::int64_t& fan_out : options.fan_outs) fan_out = std::min<std::int64_t>(fan_out, 5);
  }
  options.disjoint = below(2) == 0;
  options.seed = below(1000);
  const auto all = static_cast<std::size_t>(drawn.graph.num_edges());
  if (below(2) == 0) {
    const bool skewed = below(2) == 0;
    for (std::size_t k = 0; k < all; ++k) {
      // A few values of few digits, so that sums are exact in any order.
      drawn.weights.push_back(skewed ? std::ldexp(1.0f, static_cast<int>(below(20)))
                                     : static_cast<float>(below(4)));
    }
    options.edge_weights = drawn.weights;
  }
  const std::uint64_t timed = options.disjoint ? below(3) : 0;
  if (timed > 0 && all > 0) {
    auto& times = timed == 1 ? drawn.edge_times : drawn.vertex_times;
    times.resize(timed == 1 ? all : static_cast<std::size_t>(vertices));
    for (std::int64_t& time : times) time = static_cast<std::int64_t>(below(8));
    for (std::size_t i = 0; i < drawn.seeds.size(); ++i) {
      drawn.seed_times.push_back(static_cast<std::int64_t>(below(9)) - 1);
    }
    options.edge_times = drawn.edge_times;
    options.vertex_times = drawn.vertex_times;
    if (below(2) == 0) options.time_strategy = TimeStrategy::latest;
  }
  return drawn;
}

/// The layers are prefixes of what was drawn.
void expect_layers(const Case& drawn, const NeighbourSample& sample,
                   const ReferenceSample& expected) {
  const std::size_t hops = drawn.options.fan_outs.size();
  ASSERT_EQ(sample.layers.size(), hops);
  for (std::size_t l = 0; l < hops; ++l) {
    const Graph& layer = sample.layers[l];
    layer.validate();
    ASSERT_EQ(layer.num_rows(), expected.vertices_until[hops - 1 - l]);
    ASSERT_EQ(layer.num_cols(), expected.vertices_until[hops - l]);
    ASSERT_EQ(layer.num_edges(), expected.edges_until[hops - l]);
    ASSERT_EQ(layer.has_values(), drawn.graph.has_values() && layer.num_edges() > 0);
    for (VertexId r = 0; r < layer.num_rows(); ++r) {
      const auto& row = expected.rows[static_cast<std::size_t>(r)];
      ASSERT_EQ(layer.degree(r), std::ssize(row));
      EdgeOffset k = layer.row_offsets()[r];
      for (const auto& [source, position] : row) {
        ASSERT_EQ(layer.col_indices()[k], source);
        ASSERT_EQ(sample.edges.here()[k], position);
        if (layer.has_values()) {
          ASSERT_EQ(layer.values()[k], drawn.graph.values()[position]);
        }
        ++k;
      }
    }
  }
}

/// What holds whatever is drawn.
void expect_edges(const Case& drawn, const NeighbourSample& sample) {
  const Graph& layer = sample.layers.front();
  for (VertexId r = 0; r < layer.num_rows(); ++r) {
    const VertexId target = sample.vertices.here()[static_cast<std::size_t>(r)];
    std::vector<EdgeOffset> positions;
    for (EdgeOffset k = layer.row_offsets()[r]; k < layer.row_offsets()[r + 1]; ++k) {
      positions.push_back(sample.edges.here()[k]);
      ASSERT_GE(positions.back(), drawn.graph.row_offsets()[target]);
      ASSERT_LT(positions.back(), drawn.graph.row_offsets()[target + 1]);
      ASSERT_EQ(sample.vertices.here()[static_cast<std::size_t>(layer.col_indices()[k])],
                drawn.graph.col_indices()[positions.back()]);
    }
    if (drawn.options.replace) continue;
    std::sort(positions.begin(), positions.end());
    ASSERT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end());
  }
}

void expect_equal(const NeighbourSample& a, const NeighbourSample& b) {
  ASSERT_EQ(a.vertices_until, b.vertices_until);
  ASSERT_EQ(a.edges_until, b.edges_until);
  ASSERT_EQ(a.vertices.here(), b.vertices.here());
  ASSERT_EQ(a.trees.here(), b.trees.here());
  ASSERT_EQ(a.edges.here(), b.edges.here());
  ASSERT_EQ(a.layers, b.layers);
}

TEST(NeighboursProperty, OnDeviceAreThoseOnTheCpu) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  for (std::uint64_t number = 0; number < 600; ++number) {
    SCOPED_TRACE(::testing::Message() << "case " << number);
    const Case drawn = drawn_case(number);
    NeighbourOptions options = drawn.options;
    options.device = Device{DeviceKind::cuda, 0};
    options.edge_memory = number % 4 == 0 ? EdgeMemory::host : EdgeMemory::device;
    const NeighbourSampler here(drawn.graph, drawn.options), there(drawn.graph, options);
    for (const std::uint64_t step : {number, number + 1}) {
      const NeighbourSample sample = there.draw(drawn.seeds, step, drawn.seed_times);
      expect_equal(here.draw(drawn.seeds, step, drawn.seed_times), sample);
      for (const Graph& layer : sample.layers) layer.validate();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(NeighboursProperty, AreThoseOfTheReference) {
  for (std::uint64_t number = 0; number < 600; ++number) {
    SCOPED_TRACE(::testing::Message() << "case " << number);
    const Case drawn = drawn_case(number);
    const ThreadScope scope(static_cast<int>(1 + number % 3));
    const NeighbourSample sample =
        NeighbourSampler(drawn.graph, drawn.options).draw(drawn.seeds, number, drawn.seed_times);
    const ReferenceSample expected =
        ReferenceSampler(drawn.graph, drawn.options).draw(drawn.seeds, number, drawn.seed_times);
    ASSERT_EQ(sample.vertices.here(), expected.vertices);
    ASSERT_EQ(sample.trees.here(),
              drawn.options.disjoint ? expected.trees : std::vector<VertexId>{});
    ASSERT_EQ(sample.vertices_until, expected.vertices_until);
    ASSERT_EQ(sample.edges_until, expected.edges_until);
    expect_layers(drawn, sample, expected);
    expect_edges(drawn, sample);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tessera::sample
