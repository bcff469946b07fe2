// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/cost_fits.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/sddmm/cuda/edges/policy.hpp"

namespace tessera::ops {
namespace {

TEST(CostFits, RiseWithWhatIsCountedAndLeaveSomeOfIt) {
  const CostFit fit = {"op/kernel", 8, 0.5};
  double before = 0;
  for (const double counted_us : {0.5, 4.0, 8.0, 9.0, 9.5, 20.0, 1000.0}) {
    const double us = fitted_us(fit, counted_us);
    EXPECT_GT(us, before) << counted_us;
    before = us;
  }
  EXPECT_DOUBLE_EQ(fitted_us(fit, 1008), 500);
  EXPECT_DOUBLE_EQ(fitted_us(fit, 4), 0.5 * least_left * 4);
  EXPECT_DOUBLE_EQ(fitted_us({"op/kernel", 0, 1}, 3), 3);
}

TEST(CostFits, OfCountsAreSharesOfThemAndLaunches) {
  const CountFit fit = {"op/kernel", {2, 0.5}};
  EXPECT_DOUBLE_EQ(counted_us(fit, 0, {3, 4, 100}), 8);
  EXPECT_DOUBLE_EQ(counted_us(fit, 2, {3, 4}), 8 + 2 * chained_launch_us);
  std::vector<Counted> notes;
  counted_notes = &notes;
  counted_us(fit, 1, {7});
  counted_notes = nullptr;
  counted_us(fit, 1, {8});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].kernel, fit.kernel);
  EXPECT_EQ(notes[0].counts_us[0], 7);
}

/// The table has its lines in the order of the policies.
TEST(CostFits, OfDotProductsAreThoseOfTheirPolicies) {
  ASSERT_EQ(cost_fits::sddmm_vectors.size(), vector_policies.size());
  for (std::size_t i = 0; i < vector_policies.size(); ++i) {
    const EdgesPolicy& policy = vector_policies[i];
    const std::string name = "sddmm/vectors_" + std::to_string(policy.lanes) + "x" +
                             std::to_string(policy.vectors) + "x" + std::to_string(policy.edges) +
                             (policy.keeps ? "" : "_both");
    EXPECT_EQ(cost_fits::sddmm_vectors[i].kernel, name);
  }
}

}  // namespace
}  // namespace tessera::ops
