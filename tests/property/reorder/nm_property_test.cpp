// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
TEST(NmProperty, OrdersAreLossless) {
  constexpr std::int64_t features = 5;
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
        const Permutation order =
            reorder::order_nm(graph, reorder::NmPattern::parse(pattern), options).order;
        const Matrix<float> x = integer_features(257, features, seed);
        Matrix<float> moved(257, features);
        for (VertexId i = 0; i < 257; ++i) {
          for (std::int64_t f = 0; f < features; ++f) moved(i, f) = x(order.new_to_old()[i], f);
        }
        const Matrix<float> expected = product(graph, x);
        const Matrix<float> found = product(permuted(graph, order), moved);
        for (VertexId i = 0; i < 257; ++i) {
          for (std::int64_t f = 0; f < features; ++f) {
            ASSERT_EQ(found(i, f), expected(order.new_to_old()[i], f));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
