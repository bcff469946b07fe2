// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tessera/io/matrix_market.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/reorder/nm.hpp"

#include "support/random_coo.hpp"

namespace tessera {
namespace {

Matrix<float> integer_features(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<float> x(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.data()[i] = static_cast<float>(random.below(static_cast<std::uint64_t>(i), 17)) - 8;
  }
  return x;
}

Matrix<float> product(const Graph& graph, const Matrix<float>& x) {
  ops::SpmmOptions options;
  options.features = x.cols();
  Matrix<float> y(graph.num_rows(), x.cols());
  ops::run(ops::plan_spmm(graph, options), {x}, {y});
  return y;
}

/// Features there and results back: the same bits as without reordering, since sums of integers are
/// exact in every order.
void expect_lossless(const Graph& graph, const Permutation& order, std::uint64_t seed) {
  constexpr std::int64_t features = 5;
  const Matrix<float> x = integer_features(graph.num_rows(), features, seed);
  Matrix<float> moved(graph.num_rows(), features);
  for (VertexId i = 0; i < graph.num_rows(); ++i) {
    for (std::int64_t f = 0; f < features; ++f) moved(i, f) = x(order.new_to_old()[i], f);
  }
  const Matrix<float> expected = product(graph, x);
  const Matrix<float> found = product(permuted(graph, order), moved);
  for (VertexId i = 0; i < graph.num_rows(); ++i) {
    for (std::int64_t f = 0; f < features; ++f) {
      ASSERT_EQ(found(i, f), expected(order.new_to_old()[i], f));
    }
  }
}

TEST(NmProperty, OrdersAreLossless) {
  for (const char* pattern : {"1:2:4", "1:2:16", "16:2:16"}) {
    for (const reorder::NmAlgorithm algorithm :
         {reorder::NmAlgorithm::group, reorder::NmAlgorithm::paper}) {
      for (const std::uint64_t seed : {1u, 2u, 3u}) {
        SCOPED_TRACE(::testing::Message()
                     << pattern << ", " << to_string(algorithm) << ", seed " << seed);
        const Graph graph = testing::random_graph(257, 257, 1500, seed, seed == 2);
        reorder::NmOptions options;
        options.algorithm = algorithm;
        options.effort = 0.01;
        options.seed = seed;
        expect_lossless(graph,
                        reorder::order_nm(graph, reorder::NmPattern::parse(pattern), options).order,
                        seed);
      }
    }
  }
}

/// The matrices of the SuiteSparse collection in TESSERA_DATA, as patterns.
TEST(NmProperty, OrdersOfMatricesAreLossless) {
  const char* const data = std::getenv("TESSERA_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(data == nullptr ? "" : data) / "suitesparse";
  if (data == nullptr || !std::filesystem::exists(folder)) {
    GTEST_SKIP() << "runs where TESSERA_DATA has a folder suitesparse";
  }
  io::ReadOptions reading;
  reading.duplicates = Duplicates::first;
  reading.nonfinite = Nonfinite::allow;
  int matrices = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gz") continue;
    SCOPED_TRACE(entry.path().filename());
    const Graph read = io::read_matrix_market(entry.path().string(), reading).graph;
    const Graph graph = read.with_values({});
    expect_lossless(graph, reorder::order_nm(graph, {1, 2, 4}).order, 1);
    ++matrices;
  }
  EXPECT_GT(matrices, 0) << "no .mtx.gz in " << folder;
}

}  // namespace
}  // namespace tessera
