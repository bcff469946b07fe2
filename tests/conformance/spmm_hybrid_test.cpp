// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/reference.hpp"
#include "support/error_measure.hpp"
#include "support/matrices.hpp"
#include "support/mixed_windows.hpp"
#include "support/tile_products.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/permutation.hpp"

/// Plans that send some windows to tensor cores and others to CUDA cores. Numbers are integers, so
/// that a row that nobody or the wrong one computed shows.
namespace tessera::ops {
namespace {

std::vector<std::string> hybrid_kernel_names() {
  std::vector<std::string> names;
  for (const std::string& name : testing::kernel_names("spmm")) {
    const bool hybrid = name.find("/hybrid") != std::string::npos;
    if (hybrid || name.find("/ordered") != std::string::npos) names.push_back(name);
  }
  return names;
}

class SpmmHybridKernels : public testing::KernelTest {
 protected:
  template <class T>
  void expect_exact(const Graph& graph, std::int64_t features, SpmmPass pass) {
    SCOPED_TRACE(to_string(PrecisionOf<T>::value));
    SCOPED_TRACE(features);
    const Graph multiplied = pass == SpmmPass::forward ? graph : transposed(graph);
    const Matrix<T> x = integers<T>(multiplied.num_cols(), features, 5);
    const Matrix<T> y = product<T>(GetParam(), problem_of<T>(graph, features, pass), x);
    if (y.rows() != multiplied.num_rows() || y.cols() != features) return;
    Matrix<double> expected(multiplied.num_rows(), features);
    reference::spmm(multiplied, Reduction::sum, test::to_double(x), {}, expected);
    for (double& value : expected.span()) value = testing::rounded_to<T>(value);
    EXPECT_EQ(testing::first_mismatch(y.view(), expected, expected, {}), "");
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SpmmHybridKernels);

TEST_P(SpmmHybridKernels, AreExactWhereBothCoresHaveWindows) {
  for (const VertexId rows : {64, 65, 128, 129, 191, 700, 5000}) {
    SCOPED_TRACE(rows);
    const Graph graph = testing::mixed_windows(rows, 9000, static_cast<unsigned>(rows));
    for (const std::int64_t features : {7, 16, 64, 128, 200}) {
      expect_exact<float>(graph, features, SpmmPass::forward);
      expect_exact<Bfloat16>(graph, features, SpmmPass::forward);
      expect_exact<Float16>(graph, features, SpmmPass::forward);
    }
    expect_exact<float>(transposed(graph), 64, SpmmPass::backward);
    expect_exact<Bfloat16>(transposed(graph), 64, SpmmPass::backward);
  }
}

/// Rows and columns of the same vertices, in no order: kernels that look for another put every
/// result back where it belongs.
TEST_P(SpmmHybridKernels, AreExactOnShuffledGraphs) {
  for (const VertexId vertices : {63, 64, 200, 3000}) {
    SCOPED_TRACE(vertices);
    const Graph graph =
        permuted(testing::mixed_windows(vertices, vertices, 3), Permutation::random(vertices, 9));
    for (const SpmmPass pass : {SpmmPass::forward, SpmmPass::backward}) {
      for (const std::int64_t features : {16, 128}) {
        expect_exact<float>(graph, features, pass);
        expect_exact<Bfloat16>(graph, features, pass);
        expect_exact<Float16>(graph, features, pass);
      }
    }
  }
}

/// With scales of rows and columns, a mean and an epilogue, which all go by a row's own number.
TEST_P(SpmmHybridKernels, ScaleTheRowsThatTheyStore) {
  const VertexId vertices = 3000;
  const Graph graph = gcn_normalised(
      permuted(testing::mixed_windows(vertices, vertices, 3), Permutation::random(vertices, 9)));
  SpmmProblem problem = problem_of<float>(graph, 64, SpmmPass::forward);
  const Matrix<float> x = integers<float>(vertices, 64, 5);
  const Matrix<float> y = product<float>(GetParam(), problem, x);
  if (y.rows() != vertices) return;
  Matrix<double> expected(vertices, 64), sizes(vertices, 64);
  reference::spmm(graph, Reduction::sum, test::to_double(x), {}, expected);
  Matrix<double> absolute = test::to_double(x);
  for (double& value : absolute.span()) value = std::abs(value);
  reference::spmm(graph, Reduction::sum, absolute, {}, sizes);
  EXPECT_EQ(testing::first_mismatch(y.view(), expected, sizes, {1e-5}), "");
}

/// A plan that is asked for by name says how many windows each kind of core has.
TEST_P(SpmmHybridKernels, SayWhichCoresHaveWhichWindows) {
  testing::note_compared();
  SpmmOptions options;
  options.device = testing::device_of(GetParam());
  options.features = 128;
  options.kernel = GetParam();
  if (GetParam().find("/ordered") != std::string::npos) {
    const SpmmPlan plan = plan_spmm(testing::mixed_windows(2048, 2048, 5), options);
    EXPECT_NE(plan.explain().summary.find(" s went into an order of rows"), std::string::npos)
        << plan.explain().summary;
    return;
  }
  const SpmmPlan plan = plan_spmm(testing::mixed_windows(2048, 30000, 5), options);
  EXPECT_NE(plan.explain().summary.find("; 16 of 32 windows of 64 rows on tensor cores"),
            std::string::npos)
      << plan.explain().summary;
}

INSTANTIATE_TEST_SUITE_P(All, SpmmHybridKernels, ::testing::ValuesIn(hybrid_kernel_names()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
