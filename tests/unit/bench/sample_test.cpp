// SPDX-License-Identifier: Apache-2.0
#include "bench/sample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"

#include "bench/gate.hpp"

namespace tessera::bench {
namespace {

/// A ring of `count` vertices, and vertex 7 gathers from everyone.
Graph ring_with_hub(VertexId count) {
  std::vector<VertexId> rows, cols;
  for (VertexId v = 0; v < count; ++v) {
    if (v != 7) {
      rows.push_back(v);
      cols.push_back((v + 1) % count);
    }
    rows.push_back(7);
    cols.push_back(v);
  }
  std::vector<float> values;
  for (std::size_t i = 0; i < rows.size(); ++i) values.push_back(static_cast<float>(i));
  return from_coo(count, count, rows, cols, values);
}

TEST(RowSample, TakesEveryRowOfASmallGraph) {
  const Graph graph = ring_with_hub(50);
  const RowSample sample = sample_rows(graph, 1);
  EXPECT_EQ(sample.rows.size(), 50u);
  EXPECT_EQ(sample.graph, graph);
}

TEST(RowSample, TakesTheRowsAskedForAndEveryHub) {
  const Graph graph = ring_with_hub(2000);
  const RowSample sample = sample_rows(graph, 1, {100});
  EXPECT_GE(sample.rows.size(), 100u);
  EXPECT_LE(sample.rows.size(), 101u);
  EXPECT_TRUE(std::is_sorted(sample.rows.begin(), sample.rows.end()));
  EXPECT_TRUE(std::binary_search(sample.rows.begin(), sample.rows.end(), 7)) << "the hub";
  EXPECT_EQ(sample.cols.size(), 2000u) << "all sources of the hub";
}

TEST(RowSample, TakesFewRowsOfASmallGraphWithManyEdges) {
  const Graph graph = generate::build(generate::ErdosRenyi{.vertices = 400, .edges = 40000});
  const RowSample sample = sample_rows(graph, 1, {4096, 5000, 16});
  EXPECT_GE(sample.rows.size(), 16u);
  EXPECT_LE(sample.graph.num_edges(), 10000);
  EXPECT_EQ(sample_rows(graph, 1, {4096, 10, 16}).rows.size(), 16u) << "but not fewer than that";
  EXPECT_EQ(sample_rows(graph, 1, {4096, 40000, 16}).graph, graph);
}

TEST(RowSample, KeepsWeights) {
  const std::vector<float> row_scale = {2, 3, 4}, col_scale = {5, 6, 7};
  const std::vector<VertexId> rows = {0, 1, 2, 2}, cols = {1, 0, 1, 2};
  const std::vector<float> values = {1, 2, 3, 4};
  const Graph graph = from_coo(3, 3, rows, cols, values).with_scales(row_scale, col_scale);
  const RowSample sample = take_rows(graph, {2});
  ASSERT_EQ(sample.cols, (std::vector<VertexId>{1, 2}));
  EXPECT_EQ(sample.edges, (std::vector<EdgeOffset>{2, 3}));
  EXPECT_EQ(sample.graph.weight(0, 0), graph.weight(2, 2));
  EXPECT_EQ(sample.graph.weight(0, 1), graph.weight(2, 3));
}

TEST(RowSample, AcceptsAGraphWithoutVertices) { EXPECT_TRUE(sample_rows(Graph(), 1).rows.empty()); }

TEST(Gate, MeasuresErrorsOnTheScaleOfTheSum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const ErrorMeasure fp32(MeasureOf{});
  EXPECT_DOUBLE_EQ(fp32.error_of(1.5, 1, 2), 0.25);
  EXPECT_EQ(fp32.error_of(0, 0, 0), 0);
  EXPECT_EQ(fp32.error_of(1, 0, 0), infinity) << "something out of nothing";
  EXPECT_EQ(fp32.error_of(nan, nan, 1), 0);
  EXPECT_EQ(fp32.error_of(1, nan, 1), infinity);
  EXPECT_EQ(fp32.error_of(nan, 1, 1), infinity);
  EXPECT_EQ(fp32.error_of(infinity, infinity, infinity), 0);
  EXPECT_EQ(fp32.error_of(1, infinity, infinity), infinity);
}

TEST(Gate, KnowsWhereAPrecisionEnds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const ErrorMeasure fp16({.stored = Precision::fp16});
  EXPECT_EQ(fp16.error_of(infinity, 70000, 70000), 0);
  EXPECT_EQ(fp16.error_of(-infinity, -65520, 65520), 0);
  EXPECT_EQ(fp16.error_of(-infinity, 70000, 70000), infinity) << "the wrong one";
  EXPECT_GT(fp16.error_of(65504, 1e6, 1e6), fp16.bound()) << "finite and wrong";
  EXPECT_GT(fp16.error_of(infinity, 60000, 60000), fp16.bound()) << "it fits";
  EXPECT_LT(fp16.error_of(infinity, 65519.9, 1e5), fp16.bound()) << "the last that fit, about";
  EXPECT_EQ(fp16.error_of(nan, 70000, 70000), infinity);
  const ErrorMeasure fp32(MeasureOf{});
  EXPECT_EQ(fp32.error_of(nan, 1e38, 5e38), 0) << "inf - inf on the way";
  EXPECT_EQ(fp32.error_of(infinity, 1e38, 1e38, 5e38), 0) << "before it was divided";
  EXPECT_EQ(fp32.error_of(nan, 1e38, 3e38), infinity);
  EXPECT_GT(fp32.error_of(1e38, 4e38, 5e38), fp32.bound());
}

TEST(Gate, AdmitsHalfAStepOfTheSmallestNumbers) {
  const ErrorMeasure fp16({.stored = Precision::fp16});
  EXPECT_EQ(fp16.error_of(0x1p-24, 0x1.8p-24, 1e-7), 0);
  EXPECT_GT(fp16.error_of(0x1p-23, 0x1p-24, 1e-7), fp16.bound()) << "a whole step";
  const ErrorMeasure bf16({.stored = Precision::bf16});
  EXPECT_EQ(bf16.error_of(0, 0x1p-134, 0x1p-134), 0);
  EXPECT_GT(bf16.error_of(0, 0x1p-24, 0x1p-24), bf16.bound());
  // Each term of a sum in fp32 may lose as much.
  const ErrorMeasure long_sum({.terms = 100});
  EXPECT_EQ(long_sum.error_of(0, 100 * 0x1p-149, 1e-42), 0);
  EXPECT_GT(long_sum.error_of(0, 1000 * 0x1p-149, 1e-42), long_sum.bound());
}

TEST(Gate, PassesUpToItsBound) {
  EXPECT_TRUE((Gate{1, 1, 0, 0}).passed());
  EXPECT_FALSE((Gate{2, 1, 0, 0}).passed());
  EXPECT_FALSE((Gate{std::numeric_limits<double>::quiet_NaN(), 1, 0, 0}).passed());
}

}  // namespace
}  // namespace tessera::bench
