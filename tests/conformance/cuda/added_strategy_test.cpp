// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "ops/sddmm/kernel.hpp"
#include "ops/sddmm/reference.hpp"
#include "support/error_measure.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed_matrix.hpp"
#include "support/random_matrix.hpp"

/// The strategy that docs/design/add_an_op.md adds: dot products in windows of 32 rows.
namespace tessera::ops {

void append_cuda_dots_32_kernels(std::vector<SddmmKernel>& table);

namespace {

constexpr Device gpu{DeviceKind::cuda, 0};

class CudaAddedStrategy : public ::testing::Test {
 protected:
  void SetUp() override {
    append_cuda_dots_32_kernels(table_);
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  void compare(const Graph& graph, std::int64_t features) const {
    SddmmProblem problem;
    problem.graph = graph;
    problem.precision = Precision::bf16;
    problem.features = features;
    problem.device = gpu;
    ASSERT_EQ(table_.front().why_not(problem), "");
    auto u = testing::integers<Bfloat16>(graph.num_rows(), features, 31);
    auto v = testing::integers<Bfloat16>(graph.num_cols(), features, 32);
    Matrix<Bfloat16> edges(graph.num_edges(), 1, Bfloat16(-1.0f));
    test::PlacedMatrix<Bfloat16> placed_u(u, gpu), placed_v(v, gpu), placed_edges(edges, gpu);
    table_.front().prepare(problem)->run(placed_u.view(), placed_v.view(), placed_edges.view(), {});
    placed_edges.fetch();
    Matrix<double> expected(graph.num_edges(), 1);
    reference::sddmm(graph, EdgeFunction::dot, 1, test::to_double(u), test::to_double(v), expected);
    for (double& value : expected.span()) value = testing::rounded_to<Bfloat16>(value);
    EXPECT_EQ(testing::first_mismatch(edges.view(), expected, expected, {}), "");
  }

  std::vector<SddmmKernel> table_;
};

TEST_F(CudaAddedStrategy, DotProductsOfIntegersAreExact) {
  for (const testing::NamedGraph& each : testing::odd_patterns()) {
    for (const std::int64_t features : {8, 32, 40, 128}) {
      SCOPED_TRACE(each.name + ", " + std::to_string(features));
      compare(each.graph, features);
    }
  }
}

}  // namespace
}  // namespace tessera::ops
