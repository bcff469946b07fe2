// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

using ::testing::HasSubstr;

struct Toy {
  int size = 0;
};
struct PreparedToy {};
using ToyKernel = Kernel<Toy, PreparedToy>;

std::string always(const Toy&) { return {}; }
std::string only_small(const Toy& toy) { return toy.size > 10 ? "more than 10" : ""; }
double slow(const Toy&) { return 9; }
double fast(const Toy&) { return 1; }
double fastest(const Toy&) { return 0.5; }
std::unique_ptr<const PreparedToy> prepare(const Toy&) { return std::make_unique<PreparedToy>(); }

const std::array<ToyKernel, 3> table = {{
    {{"toy/cpu/slow", "", "toy", DeviceKind::cpu, true}, always, slow, prepare},
    {{"toy/cpu/fast", "", "toy", DeviceKind::cpu, true}, only_small, fast, prepare},
    {{"toy/cpu/atomic", "", "toy", DeviceKind::cpu, false}, always, fastest, prepare},
}};

std::string chosen(const Toy& toy, const PlanOptions& options) {
  return choose_kernel(std::span<const ToyKernel>(table), toy, options).kernel->info.name;
}

std::string message_of(const Toy& toy, const PlanOptions& options, ErrorCode code) {
  try {
    chosen(toy, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return {};
}

PlanOptions named(const std::string& kernel) {
  PlanOptions options;
  options.kernel = kernel;
  return options;
}

TEST(Registry, ChoosesTheFastestDeterministicKernelThatSupportsTheProblem) {
  EXPECT_EQ(chosen({5}, {}), "toy/cpu/fast");
  EXPECT_EQ(chosen({50}, {}), "toy/cpu/slow");
  PlanOptions relaxed;
  relaxed.allow_nondeterministic = true;
  EXPECT_EQ(chosen({5}, relaxed), "toy/cpu/atomic");
}

TEST(Registry, RunsTheKernelAskedFor) {
  EXPECT_EQ(chosen({5}, named("toy/cpu/slow")), "toy/cpu/slow");
  EXPECT_EQ(chosen({5}, named("toy/cpu/atomic")), "toy/cpu/atomic");
}

TEST(Registry, AnUnknownNameListsThoseThatExist) {
  const std::string message =
      message_of({5}, named("toy/cpu/no_such"), ErrorCode::invalid_argument);
  EXPECT_THAT(message, HasSubstr("toy/cpu/no_such"));
  for (const ToyKernel& kernel : table) EXPECT_THAT(message, HasSubstr(kernel.info.name));
}

TEST(Registry, AnUnsupportedNameSaysWhyAndNamesThoseThatCan) {
  const std::string message = message_of({50}, named("toy/cpu/fast"), ErrorCode::unsupported);
  EXPECT_THAT(message, HasSubstr("more than 10"));
  EXPECT_THAT(message, HasSubstr("toy/cpu/slow"));
}

TEST(Registry, AMissingDeviceIsABackendError) {
  PlanOptions options;
  options.device = {DeviceKind::cuda, 0};
  if (built_with_cuda()) GTEST_SKIP() << "this build has CUDA";
  EXPECT_THAT(message_of({5}, options, ErrorCode::backend_unavailable), HasSubstr("without CUDA"));
}

TEST(Registry, NoKernelAtAllGivesEveryReason) {
  const std::span<const ToyKernel> only_fast(&table[1], 1);
  try {
    choose_kernel(only_fast, Toy{50}, PlanOptions{});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("more than 10"));
  }
}

TEST(Registry, ExplainsEveryCandidate) {
  const auto choice = choose_kernel(std::span<const ToyKernel>(table), Toy{50}, PlanOptions{});
  ASSERT_EQ(choice.explanation.candidates.size(), table.size());
  EXPECT_EQ(choice.explanation.candidates[0].verdict, "chosen");
  EXPECT_EQ(choice.explanation.candidates[1].verdict, "more than 10");
  EXPECT_EQ(choice.explanation.candidates[2].verdict, "not deterministic");
  EXPECT_THAT(to_string(choice.explanation), HasSubstr("toy/cpu/atomic: not deterministic"));
}

}  // namespace
}  // namespace tessera::ops
