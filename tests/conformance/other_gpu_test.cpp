// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// A plan works on its own GPU, whichever is current: here that is the first one.
namespace tessera::test {
namespace {

constexpr Device second{DeviceKind::cuda, 1};

class OtherGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() < 2) GTEST_SKIP() << "needs two GPUs; tools/gpu.sh test runs it where they are";
  }
};

TEST_F(OtherGpu, attention) {
  const Graph graph = testing::random_graph(70, 60, 500, 1, false);
  for (const ops::KernelInfo& info : ops::kernels("attention")) {
    if (info.device != DeviceKind::cuda) continue;
    SCOPED_TRACE(info.name);
    ops::AttentionOptions options;
    options.kernel = info.name;
    options.form = ops::AttentionForm::dot;
    options.features = 16;
    options.device = second;
    AttentionCase<float> run(graph, options, 2);
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_F(OtherGpu, translation) {
  const Graph graph = testing::random_graph(130, 90, 2000, 3, false);
  const tiles::Side side = tiles::Side::transposed;
  const tiles::SplitGraph split = tiles::translate_dense(graph, 64, 3, side, second);
  const tiles::SplitGraph expected = tiles::translate_dense(graph, 64, 3, side);
  EXPECT_EQ(split.dense, expected.dense);
  EXPECT_EQ(split.rest, expected.rest);
}

}  // namespace
}  // namespace tessera::test
