// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/bits/cuda/cost.hpp"
#include "tessera/graph/generate.hpp"

/// What holds of predictions for products and sums of few bits, whatever they count.
namespace tessera::test {
namespace {

using ops::BitProblem;

struct BitModel {
  std::string kernel;
  std::function<double(const BitProblem&, const DeviceTraits&)> us;
};

std::vector<BitModel> product_models() {
  return {{"planes",
           [](const BitProblem& problem, const DeviceTraits& gpu) {
             return ops::predict_planes_us(problem, {64, 64, true}, gpu);
           }},
          {"bytes",
           [](const BitProblem& problem, const DeviceTraits& gpu) {
             return ops::predict_bytes_us(problem, {256, 128, true}, gpu);
           }},
          {"pairs", ops::predict_pairs_us},
          {"byte_pairs", ops::predict_byte_pairs_us}};
}

BitProblem product_of(std::int64_t rows, std::int64_t cols, std::int64_t depth, int a_bits = 1,
                      int b_bits = 2) {
  BitProblem problem;
  problem.options.rows = rows;
  problem.options.cols = cols;
  problem.options.depth = depth;
  problem.options.a_bits = a_bits;
  problem.options.b_bits = b_bits;
  return problem;
}

BitProblem sums_of(const Graph& graph, std::int64_t cols) {
  BitProblem problem = product_of(graph.num_rows(), cols, graph.num_cols(), 1, 8);
  problem.graph = graph;
  return problem;
}

double rows_us(const BitProblem& problem, const DeviceTraits& gpu) {
  return ops::predict_bit_rows_us(problem, {8, 1, 4, 16, 1, false}, gpu);
}

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

TEST(BitCosts, OfProductsRiseWithEverySide) {
  for (const BitModel& model : product_models()) {
    SCOPED_TRACE(model.kernel);
    const auto us = [&](const BitProblem& problem) { return model.us(problem, h200_traits()); };
    const double base = us(product_of(20'000, 128, 2048));
    EXPECT_GT(us(product_of(80'000, 128, 2048)), base);
    EXPECT_GT(us(product_of(20'000, 512, 2048)), base);
    EXPECT_GT(us(product_of(20'000, 128, 16'384)), base);
    EXPECT_GT(base, us(product_of(0, 128, 2048)));
    EXPECT_LT(us(product_of(64, 16, 64)), 10);
  }
}

/// Half of a GPU takes longer, and no more than twice as long.
TEST(BitCosts, OfProductsFallWithProcessorsAndBandwidth) {
  DeviceTraits half = h200_traits();
  half.processors /= 2;
  half.memory_bytes_per_us /= 2;
  for (const BitModel& model : product_models()) {
    SCOPED_TRACE(model.kernel);
    const BitProblem problem = product_of(100'000, 256, 4096);
    const double whole_us = model.us(problem, h200_traits()), half_us = model.us(problem, half);
    EXPECT_GT(half_us, 1.5 * whole_us);
    EXPECT_LT(half_us, 2.1 * whole_us);
  }
}

/// Where many planes meet many, their pairs are more than bytes; where few do, they are less.
TEST(BitCosts, SendManyPlanesToBytesAndFewToPairs) {
  const BitProblem few = product_of(8192, 64, 4096, 1, 1);
  EXPECT_LT(ops::predict_pairs_us(few, h200_traits()),
            ops::predict_byte_pairs_us(few, h200_traits()));
  const BitProblem many = product_of(8192, 64, 4096, 8, 8);
  EXPECT_GT(ops::predict_pairs_us(many, h200_traits()),
            ops::predict_byte_pairs_us(many, h200_traits()));
}

/// Sums of 32 bits are four times the bytes of codes.
TEST(BitCosts, OfSumsRiseWithEdgesWidthAndWhatIsStored) {
  const Graph few = random_graph(10'000, 100'000), many = random_graph(10'000, 900'000);
  for (const auto& us : {rows_us, ops::predict_bit_windows_us, ops::predict_bit_tall_us}) {
    const double base = us(sums_of(few, 64), h200_traits());
    EXPECT_GT(us(sums_of(many, 64), h200_traits()), base);
    EXPECT_GT(us(sums_of(few, 128), h200_traits()), base);
    BitProblem codes = sums_of(few, 64);
    codes.options.output = ops::BitOutput::bytes;
    EXPECT_LE(us(codes, h200_traits()), base);
  }
}

TEST(BitCosts, SendDenseGraphsToWindowsAndSparseOnesToRows) {
  const BitProblem dense = sums_of(communities(16'384, 128, 120), 128);
  EXPECT_LT(ops::predict_bit_tall_us(dense, h200_traits()), 0.6 * rows_us(dense, h200_traits()));
  BitProblem sparse = sums_of(random_graph(200'000, 800'000), 128);
  sparse.options.b_bytes = true;
  sparse.options.output = ops::BitOutput::bytes;
  EXPECT_GT(ops::predict_bit_tall_us(sparse, h200_traits()), 1.05 * rows_us(sparse, h200_traits()));
}

}  // namespace
}  // namespace tessera::test
