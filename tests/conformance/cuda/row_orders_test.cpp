// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/cuda/laid_graph.hpp"
#include "cuda/wgmma_device.hpp"
#include "support/matrices.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "tessera/reorder/permutation.hpp"

/// Plans that list rows in another order: where it pays, and with results in their places.
namespace tessera {
namespace {

using test::gpu;
using test::spmm_options;

class GpuRowOrders : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

std::vector<float> sums_by(const ops::SpmmPlan& plan, const Matrix<float>& x_values) {
  const std::int64_t features = plan.options().features;
  test::Padded<float> x(x_values, 8);
  test::Padded<float> y(plan.graph().num_rows(), features, 8);
  test::Placed<float> placed_x(x, gpu), placed_y(y, gpu);
  ops::run(plan, {placed_x.view()}, {placed_y.view()});
  placed_y.fetch();
  std::vector<float> sums;
  for (VertexId row = 0; row < plan.graph().num_rows(); ++row) {
    for (std::int64_t j = 0; j < features; ++j) sums.push_back(y.view()(row, j));
  }
  return sums;
}

/// Results of a plan for so many epochs, which should order rows or leave them as they are.
std::vector<float> sums_of_plan(const Graph& graph, std::int64_t features, std::int64_t epochs,
                                bool ordered) {
  ops::SpmmOptions options = spmm_options(features);
  options.backward = false;
  options.epochs = epochs;
  const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
  const std::string& name = plan.kernel().name;
  EXPECT_EQ(name.find("/ordered") != std::string::npos, ordered)
      << name << " for " << epochs << " epochs";
  return sums_by(plan, testing::integers<float>(graph.num_cols(), features, 5));
}

Graph shuffled(const generate::BlockModel& communities) {
  const Graph graph = generate::build(communities);
  return permuted(graph, Permutation::random(graph.num_rows(), 3));
}

/// Communities whose rows fill windows, those that suit sparse tensor cores, and those whose rows
/// share sources with the next in a list and little with a window.
TEST_F(GpuRowOrders, AreFoundPastBreakEvenAlone) {
  struct Case {
    generate::BlockModel communities;
    std::int64_t features;
    bool windows;
  };
  const std::vector<Case> cases = {
      {{.vertices = 10000, .communities = 50, .mean_degree = 100, .inside = 0.99, .seed = 5},
       64,
       true},
      {{.vertices = 65536, .communities = 64, .mean_degree = 85, .inside = 1, .seed = 5},
       128,
       true},
      {{.vertices = 30000, .communities = 3000, .mean_degree = 9, .inside = 0.6, .seed = 5},
       128,
       false}};
  for (const Case& each : cases) {
    if (each.windows && !cuda::has_wgmma(gpu)) continue;
    SCOPED_TRACE(each.communities.communities);
    const Graph graph = shuffled(each.communities);
    EXPECT_EQ(sums_of_plan(graph, each.features, 1, false),
              sums_of_plan(graph, each.features, 100'000'000, true));
  }
}

/// The order is that of a list alone: by the same lanes every sum has the same bits.
TEST_F(GpuRowOrders, OfListsChangeNoBit) {
  const Graph graph = generate::build(generate::Rmat{.scale = 12, .edges = 90000, .seed = 4});
  for (const std::int64_t features : {16, 100, 128}) {
    ops::SpmmOptions options = spmm_options(features);
    options.backward = false;
    options.kernel = "spmm/cuda/ordered_rows";
    const ops::SpmmPlan ordered = ops::plan_spmm(graph, options);
    const std::string summary = ordered.explain().summary;
    const std::size_t lanes = summary.find("; by rows_");
    ASSERT_NE(lanes, std::string::npos) << summary;
    options.kernel =
        "spmm/cuda/" + summary.substr(lanes + 5, summary.find(';', lanes + 1) - lanes - 5);
    const Matrix<float> x = test::normal_matrix<float>(graph.num_cols(), features, 5);
    EXPECT_EQ(sums_by(ordered, x), sums_by(ops::plan_spmm(graph, options), x)) << options.kernel;
  }
}

}  // namespace
}  // namespace tessera
