// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/kernel.hpp"

#include "core/size_range.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"

namespace tessera::ops {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

SpmmProblem problem_with(std::vector<float> values, Precision precision) {
  SpmmProblem problem;
  const auto edges = static_cast<VertexId>(values.size());
  std::vector<VertexId> ids(values.size());
  for (VertexId i = 0; i < edges; ++i) ids[static_cast<std::size_t>(i)] = i;
  problem.graph = from_coo(edges, edges, ids, ids).with_values(SharedArray<float>(values));
  problem.precision = precision;
  return problem;
}

TEST(WeightsFit, SizesLeaveOutZeroAndWhatIsNotFinite) {
  const SizeRange sizes = tessera::sizes_of(std::vector<float>{0, -3, 1e-42f, 2, infinity, -0.0f});
  EXPECT_EQ(sizes.smallest, 1e-42f);
  EXPECT_EQ(sizes.largest, 3);
  EXPECT_FALSE(sizes.all_finite);
  EXPECT_EQ(tessera::sizes_of(std::vector<float>{0, 0}).largest, 0);
  EXPECT_EQ(tessera::sizes_of({}).smallest, 0);
  EXPECT_TRUE(tessera::sizes_of(std::vector<float>{1}).all_finite);
}

TEST(WeightsFit, APlanNamesTheLargestWeightAndTheEndOfThePrecision) {
  const auto too_large = problem_with({1, -70000, 3}, Precision::fp16);
  testing::expect_error(ErrorCode::unsupported, {"fp16 ends at 65504", "70000", "use bf16"},
                        [&] { check_weights_fit(too_large); });
  EXPECT_NO_THROW(check_weights_fit(problem_with({1, -65504}, Precision::fp16)));
  EXPECT_NO_THROW(check_weights_fit(problem_with({1, -70000}, Precision::bf16)));
  EXPECT_NO_THROW(check_weights_fit(problem_with({3e38f, 1e-42f}, Precision::fp32)));
}

TEST(WeightsFit, ScalesCountAndValuesOfRunsDoNot) {
  SpmmProblem problem = problem_with({60000, 60000}, Precision::fp16);
  const auto scales = [](float a, float b) { return SharedArray<float>(std::vector<float>{a, b}); };
  problem.graph = problem.graph.with_scales(scales(1, 2), scales(1, 0.5f));
  EXPECT_NO_THROW(check_weights_fit(problem)) << "the large factors belong to different edges";
  problem.graph = problem.graph.with_scales(scales(1, 2), scales(0.5f, 1));
  EXPECT_THROW(check_weights_fit(problem), Error);
  problem.edge_values_expected = true;
  EXPECT_NO_THROW(check_weights_fit(problem));
}

TEST(WeightsFit, PlansDeclineBothWays) {
  const SpmmProblem problem = problem_with({1, 3e38f}, Precision::fp32);
  const Graph graph = problem.graph.with_scales(SharedArray<float>(std::vector<float>{2, 2}),
                                                SharedArray<float>(std::vector<float>{1, 1}));
  SpmmOptions options;
  options.features = 4;
  testing::expect_error(ErrorCode::unsupported, {"fp32 ends at 3.40282e+38"},
                        [&] { plan_spmm(graph, options); });
  options.backward = true;
  testing::expect_error(ErrorCode::unsupported, {"fp32 ends at"},
                        [&] { plan_spmm(graph, options); });
}

}  // namespace
}  // namespace tessera::ops
