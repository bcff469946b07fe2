// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/attention_weights.hpp"
#include "support/kernel_names.hpp"
#include "support/odd_graphs.hpp"

/// Whatever attention a user asks for, there is a kernel, however wide its heads are.
namespace tessera::test {
namespace {

constexpr char wide_kernel[] = "attention/cuda/terms";

bool has_wide_kernel() {
  const auto names = testing::kernel_names("attention");
  return std::find(names.begin(), names.end(), wide_kernel) != names.end();
}

/// Deterministic, strict, exact where numbers are not finite, and for repeated edges.
bool some_kernel_takes(const AttentionOptions& options) {
  const auto kernels = ops::attention_kernels();
  return std::any_of(kernels.begin(), kernels.end(), [&](const ops::AttentionKernel& kernel) {
    const ops::KernelInfo& info = kernel.info;
    return info.device == DeviceKind::cuda && info.deterministic && info.strict &&
           info.exact_nonfinite && info.repeated_edges &&
           kernel.why_not({testing::path_graph(3), options}).empty();
  });
}

TEST(AttentionOnGpu, EveryShapeHasAnExactKernel) {
  if (!has_wide_kernel()) GTEST_SKIP() << "built without CUDA";
  for (const AttentionForm form :
       {AttentionForm::gat, AttentionForm::gatv2, AttentionForm::dot, AttentionForm::cosine}) {
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
      for (const std::int64_t heads : {1, 3, 8}) {
        if (form == AttentionForm::cosine && heads > 1) continue;
        for (const std::int64_t width : {0, 1, 7, 64, 257, 512, 513, 1024, 1025, 5000}) {
          for (const double dropout : {0.0, 0.5}) {
            AttentionOptions options = options_of(wide_kernel, form, heads, width, dropout);
            options.precision = precision;
            EXPECT_TRUE(some_kernel_takes(options))
                << describe(options) << ", " << to_string(precision);
          }
        }
      }
    }
  }
}

class AttentionOfVeryWideHeads : public ::testing::Test {
 protected:
  template <class T>
  static void check(std::int64_t heads, std::int64_t width) {
    const Graph graph = testing::random_graph(33, 21, 250, 5, false);
    for (const AttentionForm form : all_forms) {
      for (const double dropout : {0.0, 0.4}) {
        AttentionOptions options = options_of(wide_kernel, form, heads, width, dropout);
        SCOPED_TRACE(describe(options) + ", " + to_string(ops::PrecisionOf<T>::value));
        AttentionCase<T> run(graph, options, 700);
        run.run_all();
        expect_matches_reference(run);
        check_weights<T>(options);
      }
    }
  }
};

TEST_F(AttentionOfVeryWideHeads, MatchTheReference) {
  if (!has_wide_kernel() || num_gpus() == 0) GTEST_SKIP() << "no GPU";
  check<float>(1, 0);
  check<float>(1, 513);
  check<float>(3, 600);
  check<Bfloat16>(2, 1030);
  check<Float16>(1, 1025);
}

}  // namespace
}  // namespace tessera::test
