// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/expected.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/generate.hpp"

/// Plans for GPUs that need not be there.
namespace tessera::ops {
namespace {

Graph communities() {
  return generate::build(generate::BlockModel{
      .vertices = 8192, .communities = 64, .mean_degree = 100, .inside = 1, .seed = 3});
}

SpmmOptions in_bf16(std::int64_t features) {
  SpmmOptions options;
  options.precision = Precision::bf16;
  options.features = features;
  return options;
}

const Candidate& chosen(const Explanation& explanation) {
  const auto& all = explanation.candidates;
  return *std::find_if(all.begin(), all.end(),
                       [](const Candidate& one) { return one.verdict == "chosen"; });
}

double least_us(const char* gpu, const SpmmOptions& options) {
  return chosen(expected(communities(), options, built_in_profile(gpu))).predicted_us;
}

class Expected : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  }
};

TEST(ExpectedWithoutCuda, SaysWhatIsMissing) {
  if (built_with_cuda()) GTEST_SKIP() << "built with CUDA";
  try {
    expected(communities(), in_bf16(64), built_in_profile("a100"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::backend_unavailable);
    EXPECT_NE(std::string(error.what()).find("built without CUDA"), std::string::npos);
  }
}

TEST_F(Expected, KernelsOfHopperAreChosenThereAlone) {
  const std::string windows = chosen(expected(communities(), in_bf16(128),  //
                                              built_in_profile("h200")))
                                  .kernel;
  EXPECT_NE(windows.find("64"), std::string::npos) << windows;
  for (const char* gpu : {"a100", "l40s", "4090", "b200"}) {
    const Explanation there = expected(communities(), in_bf16(128), built_in_profile(gpu));
    for (const Candidate& one : there.candidates) {
      if (one.kernel != "spmm/cuda/tall_64") continue;
      EXPECT_NE(one.verdict.find("needs a GPU with wgmma"), std::string::npos) << gpu;
    }
    EXPECT_NE(there.summary.find("need not be here"), std::string::npos) << there.summary;
    EXPECT_NE(there.summary.find("not measured"), std::string::npos) << there.summary;
  }
}

TEST_F(Expected, TimesFollowProcessorsAndBandwidth) {
  const SpmmOptions options = in_bf16(256);
  EXPECT_LE(least_us("h200", options), least_us("h100", options));
  EXPECT_LT(least_us("h100", options), least_us("a100", options));
}

TEST_F(Expected, EveryOpHasAnExplanationAndItsBackwardPass) {
  const Graph graph = communities();
  const DeviceProfile& gpu = built_in_profile("a100");
  SpmmOptions sums = in_bf16(64);
  sums.backward = true;
  const Explanation both = expected(graph, sums, gpu);
  ASSERT_NE(find_child(both, "backward"), nullptr);
  EXPECT_GT(chosen(*find_child(both, "backward")).predicted_us, 0);
  SddmmOptions dots;
  dots.features = 64;
  EXPECT_GT(chosen(expected(graph, dots, gpu)).predicted_us, 0);
  EXPECT_GT(chosen(expected(graph, EdgeSoftmaxOptions{}, gpu)).predicted_us, 0);
  AttentionOptions attention;
  attention.features = 64;
  EXPECT_GT(chosen(expected(graph, attention, gpu)).predicted_us, 0);
  AggregateUpdateOptions update;
  update.in = update.out = 64;
  update.backward = true;
  EXPECT_EQ(expected(graph, update, gpu).children.size(), 1);
  BitOptions bits;
  bits.cols = 64;
  bits.b_bits = 2;
  EXPECT_GT(chosen(expected_bit_aggregate(graph, bits, gpu)).predicted_us, 0);
  bits.rows = bits.depth = 1024;
  EXPECT_GT(chosen(expected_bit_gemm(bits, gpu)).predicted_us, 0);
}

TEST_F(Expected, OptionsAndProfilesAreChecked) {
  DeviceProfile broken = built_in_profile("a100");
  broken.processors = 0;
  EXPECT_THROW(expected(communities(), in_bf16(64), broken), Error);
  SddmmOptions heads;
  heads.features = 64;
  heads.heads = 3;
  EXPECT_THROW(expected(communities(), heads, built_in_profile("a100")), Error);
}

}  // namespace
}  // namespace tessera::ops
