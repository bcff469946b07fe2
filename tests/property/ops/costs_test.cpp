// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/cost_models.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/normalise.hpp"

/// What holds of predictions whatever a model counts: plans choose by them.
namespace tessera::test {
namespace {

Graph random_graph(VertexId vertices, EdgeOffset edges) {
  return generate::build(generate::ErdosRenyi{.vertices = vertices, .edges = edges, .seed = 3});
}

Graph communities(VertexId vertices, VertexId number, double mean_degree) {
  return generate::build(generate::BlockModel{.vertices = vertices,
                                              .communities = number,
                                              .mean_degree = mean_degree,
                                              .inside = 1,
                                              .seed = 3});
}

std::string name_of(const CostModel& model) { return model.op + " by " + model.kernel; }

/// Every model, each on several amounts of work that grow.
void expect_rising(const std::vector<Workload>& works) {
  for (const CostModel& model : cost_models()) {
    SCOPED_TRACE(name_of(model));
    double before = 0;
    for (const Workload& work : works) {
      if (!model.takes(work.features)) continue;
      const double us = model.us(work, h200_traits());
      EXPECT_GT(us, before) << work.graph.num_edges() << " edges, " << work.features << " features";
      before = us;
    }
  }
}

TEST(Costs, AreNumbersAndNeverNegative) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    for (const std::int64_t features : {0, 1, 41, 128}) {
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        for (const CostModel& model : cost_models()) {
          if (!model.takes(features)) continue;
          const double us = model.us({named.graph, features, precision}, h200_traits());
          EXPECT_TRUE(std::isfinite(us) && us >= 0)
              << name_of(model) << " on " << named.name << ", " << features << ": " << us;
        }
      }
    }
  }
}

TEST(Costs, OfNoEdgesAreThoseOfAFewLaunches) {
  const Graph empty = random_graph(64, 0), small = random_graph(20'000, 400'000);
  for (const CostModel& model : cost_models()) {
    const double us = model.us({empty}, h200_traits());
    EXPECT_LT(us, 25) << name_of(model);
    EXPECT_LE(us, model.us({small}, h200_traits())) << name_of(model);
  }
}

TEST(Costs, RiseWithEdges) {
  const Graph few = random_graph(10'000, 30'000), more = random_graph(10'000, 240'000);
  const Graph many = random_graph(10'000, 1'900'000);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    expect_rising({{few, 64, precision}, {more, 64, precision}, {many, 64, precision}});
  }
}

TEST(Costs, RiseWithRows) {
  expect_rising({{random_graph(10'000, 100'000)},
                 {random_graph(40'000, 400'000)},
                 {random_graph(160'000, 1'600'000)}});
}

TEST(Costs, RiseWithFeatures) {
  const Graph graph = random_graph(40'000, 800'000);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    expect_rising({{graph, 16, precision}, {graph, 64, precision}, {graph, 256, precision}});
  }
}

/// Half of a GPU takes longer, and no more than twice as long but for what it hides less.
TEST(Costs, FallWithProcessorsAndBandwidth) {
  const Workload large = {random_graph(100'000, 2'000'000), 128};
  DeviceTraits half = h200_traits();
  half.name = "half of an H200";
  half.processors /= 2;
  half.memory_bytes_per_us /= 2;
  for (const CostModel& model : cost_models()) {
    const double whole_us = model.us(large, h200_traits()), half_us = model.us(large, half);
    EXPECT_GT(half_us, 1.2 * whole_us) << name_of(model);
    EXPECT_LT(half_us, 2.5 * whole_us) << name_of(model);
  }
}

TEST(Costs, OfTwoGraphsInOneAreNoMoreThanOfOneAfterTheOther) {
  const Graph one = communities(20'000, 200, 60), both = communities(40'000, 400, 60);
  for (const CostModel& model : cost_models()) {
    const double one_us = model.us({one}, h200_traits()), both_us = model.us({both}, h200_traits());
    EXPECT_GT(both_us, one_us) << name_of(model);
    EXPECT_LT(both_us, 2.1 * one_us) << name_of(model);
  }
}

/// Every row of X comes once at least.
TEST(Costs, AreNoLessThanWhatMemoryTakes) {
  const Graph graph = random_graph(400'000, 4'000'000);
  const double bytes = 400e3 * 256 * 4;
  for (const CostModel& model : cost_models()) {
    if (model.op == "edge_softmax" || !model.takes(256)) continue;  // the former reads no X
    EXPECT_GT(model.us({graph, 256, Precision::fp32}, h200_traits()),
              bytes / h200_traits().memory_bytes_per_us)
        << name_of(model);
  }
}

/// Those of sources are loaded for every edge, or every column of a window.
TEST(Costs, RiseWithScales) {
  const Graph pattern = random_graph(40'000, 800'000), scaled = gcn_normalised(pattern, false);
  for (const CostModel& model : cost_models()) {
    const double us = model.us({pattern}, h200_traits()), more = model.us({scaled}, h200_traits());
    EXPECT_GE(more, us) << name_of(model);
    const bool by_rows = model.op == "spmm" && model.kernel == "rows";
    if (by_rows || model.kernel == "tall_64" || model.op == "update") {
      EXPECT_GT(more, 1.05 * us) << name_of(model);
    }
  }
}

/// Rows that share their sources suit windows, whose sources are gathered once; of rows that share
/// none, each is best by itself.
TEST(Costs, SendDenseGraphsToWindowsAndSparseOnesToRows) {
  const auto windows_over_rows = [](const std::string& op, const Workload& work) {
    double windows = std::numeric_limits<double>::infinity(), rows = windows;
    for (const CostModel& model : cost_models()) {
      if (model.op != op) continue;
      double& least = model.on_windows ? windows : rows;
      least = std::min(least, model.us(work, h200_traits()));
    }
    return windows / rows;
  };
  const Workload dense = {communities(16'384, 128, 120), 128, Precision::fp32};
  for (const char* op : {"spmm", "sddmm", "dot attention", "update"}) {
    EXPECT_LT(windows_over_rows(op, dense), 0.6) << op;
  }
  const Workload small = {random_graph(2'708, 5'278), 128, Precision::fp32};
  for (const char* op : {"spmm", "sddmm", "update"}) {
    EXPECT_GT(windows_over_rows(op, small), 1.05) << op;
  }
  // One warp has the longest window.
  const Workload hub = {testing::hub_graph(2'708, 2'708, 3), 128, Precision::bf16};
  EXPECT_GT(windows_over_rows("dot attention", hub), 1.05);
  const Workload sparse = {random_graph(200'000, 800'000), 128, Precision::fp32};
  for (const char* op : {"spmm", "sddmm"}) EXPECT_GT(windows_over_rows(op, sparse), 1.2) << op;
}

}  // namespace
}  // namespace tessera::test
