// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/edge_difference.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"

#include "ops/edge_difference/kernel.hpp"
#include "ops/edge_difference/reference.hpp"

namespace tessera::ops {
namespace {

template <class T>
Matrix<T> numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<T> matrix(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] =
        static_cast<T>(static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5));
  }
  return matrix;
}

Matrix<double> widened(const Matrix<float>& from) {
  Matrix<double> to(from.rows(), from.cols());
  for (std::int64_t i = 0; i < to.size(); ++i) to.data()[i] = static_cast<double>(from.data()[i]);
  return to;
}

void expect_near(const Matrix<float>& got, const Matrix<double>& expected) {
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got.data()[i]), expected.data()[i], 1e-4) << "element " << i;
  }
}

TEST(EdgeDifference, EveryKernelMatchesTheReference) {
  for (const auto& kernel : edge_difference_kernels()) {
    for (const auto& [name, graph] : testing::odd_patterns()) {
      if (!graph.is_square()) continue;
      for (const std::int64_t features : {1, 7, 16}) {
        SCOPED_TRACE(::testing::Message()
                     << kernel.info.name << " on " << name << ", " << features);
        EdgeDifferenceOptions options;
        options.features = features;
        options.kernel = kernel.info.name;
        options.backward = true;
        const EdgeDifferencePlan plan = plan_edge_difference(graph, options);
        const Matrix<float> x = numbers<float>(graph.num_rows(), features, 1);
        const Matrix<float> grad = numbers<float>(graph.num_edges(), features, 2);
        Matrix<double> expected(graph.num_edges(), features);
        Matrix<double> expected_grad(graph.num_rows(), features);
        reference::edge_difference(graph, widened(x), expected);
        reference::edge_difference_backward(graph, widened(grad), expected_grad);
        for (const int threads : {1, 2, 3}) {
          set_num_threads(threads);
          Matrix<float> differences(graph.num_edges(), features, 77.0f);
          Matrix<float> grad_x(graph.num_rows(), features, 77.0f);
          run(plan, x, differences);
          run_backward(plan, grad, grad_x);
          expect_near(differences, expected);
          expect_near(grad_x, expected_grad);
        }
        set_num_threads(0);
      }
    }
  }
}

TEST(EdgeDifference, IsListedAndExplainsItself) {
  ASSERT_EQ(kernels("edge_difference").size(), 1u);
  EXPECT_EQ(kernels("edge_difference").front().name, "edge_difference/cpu/rows");
  EdgeDifferenceOptions options;
  options.features = 4;
  options.tune = Tune::measured;
  const Graph graph(2, 2, std::vector<EdgeOffset>{0, 1, 2}, std::vector<VertexId>{1, 0});
  EXPECT_NE(plan_edge_difference(graph, options).explain().summary.find("edge_difference/cpu/rows"),
            std::string::npos);
}

TEST(EdgeDifference, WrongOperandsAreNamed) {
  const Graph graph(2, 2, std::vector<EdgeOffset>{0, 1, 2}, std::vector<VertexId>{1, 0});
  EdgeDifferenceOptions options;
  options.features = 4;
  const EdgeDifferencePlan plan = plan_edge_difference(graph, options);
  Matrix<float> x(2, 4, 0.0f), wrong(2, 3, 0.0f);
  testing::expect_error(ErrorCode::invalid_argument, {"differences"}, [&] { run(plan, x, wrong); });
  options.precision = Precision::bf16;
  testing::expect_error(ErrorCode::unsupported, {"fp32 and fp64"},
                        [&] { plan_edge_difference(graph, options); });
}

}  // namespace
}  // namespace tessera::ops
