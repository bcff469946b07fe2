// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "support/kernel_names.hpp"
#include "tessera/core/error.hpp"

/// How many cases a kernel computed for each test: one that declined them all has shown nothing.
namespace tessera::testing {

struct Comparisons {
  std::int64_t compared = 0;
  std::map<std::string, std::int64_t> declined;  ///< by reason
};

/// Those of the test that runs.
inline Comparisons& comparisons() {
  static Comparisons current;
  return current;
}

/// A kernel took a case, whose result is compared.
inline void note_compared() { ++comparisons().compared; }

/// A kernel declined a case for a reason.
inline void note_declined(const std::string& reason) { ++comparisons().declined[reason]; }

/// What `plan` makes, or nothing where a kernel declines the case: CPU kernels take every case, a
/// CUDA kernel may decline some.
template <class Plan>
auto planned(Device device, Plan&& plan) -> std::optional<decltype(plan())> {
  try {
    auto made = plan();
    note_compared();
    return made;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    EXPECT_NE(device.kind, DeviceKind::cpu) << error.what();
    note_declined(error.what());
    return {};
  }
}

/// What all tests of this process compared, by kernel, printed when they are over.
class ComparisonTotals : public ::testing::Environment {
 public:
  static std::map<std::string, std::int64_t>& by_kernel() {
    static std::map<std::string, std::int64_t> totals;
    return totals;
  }
  void TearDown() override {
    for (const auto& [kernel, compared] : by_kernel()) {
      std::cout << "compared " << kernel << " " << compared << "\n";
    }
  }
};
inline ::testing::Environment* const comparison_totals =
    ::testing::AddGlobalTestEnvironment(new ComparisonTotals);

/// A test whose parameter is the name of a kernel. It cannot pass without a comparison: kernels of
/// the CPU take every case and fail, kernels of a GPU are skipped with their reasons. A GPU kernel
/// that takes no case at all fails in the test ServeSomeProblem of its op.
class KernelTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { comparisons() = {}; }

  void TearDown() override {
    const Comparisons& found = comparisons();
    ComparisonTotals::by_kernel()[GetParam()] += found.compared;
    RecordProperty("compared", std::to_string(found.compared));
    if (found.compared > 0 || HasFailure() || IsSkipped()) return;
    if (device_of(GetParam()).kind == DeviceKind::cpu || must_compare_) {
      if (!lacks_instruction()) ADD_FAILURE() << GetParam() << " compared nothing" << reasons();
    }
    if (!HasFailure()) GTEST_SKIP() << GetParam() << " compared nothing" << reasons();
  }

  /// Says that this test fails where a kernel declines all its cases.
  void must_compare() { must_compare_ = true; }

 private:
  static bool lacks_instruction() {
    for (const auto& [reason, count] : comparisons().declined) {
      if (reason.find("needs a GPU") != std::string::npos) return true;
    }
    return false;
  }
  static std::string reasons() {
    std::string text;
    for (const auto& [reason, count] : comparisons().declined) {
      text += (text.empty() ? ": " : "; ") + std::to_string(count) + " times " + reason;
    }
    return text;
  }

  bool must_compare_ = false;
};

}  // namespace tessera::testing
