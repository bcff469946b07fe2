// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/suite.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"

/// Checks hold on weights at both ends of fp32 and on sums over many rows.
namespace tessera::bench {
namespace {

/// Every kernel of a suite in every precision. Returns how many were compared.
int expect_passes(const Suite& suite, const Graph& graph, std::int64_t features, Device device) {
  const std::vector<std::string> named = kernel_names(suite, device.kind);
  int compared = 0;
  for (const std::string& kernel : named.empty() ? std::vector<std::string>{""} : named) {
    for (const Precision precision : precisions_on(suite, device.kind)) {
      Problem problem{graph, "odd", features, precision, default_heads(suite, features), kernel, 3};
      problem.device = device;
      try {
        const Gate gate = suite.prepare(problem)->check();
        EXPECT_TRUE(gate.passed())
            << suite.op << " by " << kernel << " in " << to_string(precision) << ", " << features
            << " features: " << gate.max_error << " where " << gate.bound << " is allowed";
        ++compared;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      }
    }
  }
  return compared;
}

void expect_all_pass(const Graph& graph, Device device) {
  for (const Suite& suite : suites()) {
    if (suite.on_request) continue;
    for (const std::int64_t features : {1, 33, 64}) {
      EXPECT_GT(expect_passes(suite, graph, features, device), 0) << suite.op;
    }
  }
}

/// Both signs, and hubs on both sides.
Graph weighted(float weight) {
  const Graph pattern = testing::hub_graph(300, 2000, 4);
  std::vector<float> values(static_cast<std::size_t>(pattern.num_edges()));
  for (std::size_t e = 0; e < values.size(); ++e) {
    values[e] = weight * (e % 3 == 0 ? -1.0f : 1.0f) / static_cast<float>(1 + e % 7);
  }
  return pattern.with_values(SharedArray<float>(std::move(values)));
}

class OddWeights : public ::testing::TestWithParam<float> {};

TEST_P(OddWeights, PassEveryCheck) { expect_all_pass(weighted(GetParam()), {}); }

TEST_P(OddWeights, PassEveryCheckOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_all_pass(weighted(GetParam()), {DeviceKind::cuda, 0});
}

INSTANTIATE_TEST_SUITE_P(All, OddWeights,
                         ::testing::Values(1e-42f, 1e-30f, 1e-7f, 6e4f, 1e8f, 1e30f, 3e38f),
                         [](const auto& weight) { return "W" + std::to_string(weight.index); });

TEST(OddSizes, BatchNormIsExactOverManyRows) {
  constexpr VertexId rows = 200000;
  const Graph graph(rows, rows, std::vector<EdgeOffset>(rows + 1, 0), std::vector<VertexId>{});
  EXPECT_EQ(expect_passes(find_suite("batch_norm"), graph, 3, {}), 2);
}

}  // namespace
}  // namespace tessera::bench
