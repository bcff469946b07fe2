// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/registry.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/graph/fingerprint.hpp"

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

TEST(Registry, RunsTheFastestOfAGroup) {
  EXPECT_EQ(chosen({5}, named("toy/cpu/f*")), "toy/cpu/fast");
  EXPECT_EQ(chosen({5}, named("toy/cpu/*")), "toy/cpu/atomic") << "naming accepts what they do";
  EXPECT_THAT(message_of({50}, named("toy/cpu/f*"), ErrorCode::unsupported),
              HasSubstr("others were asked for"));
  EXPECT_THAT(message_of({5}, named("toy/gpu/*"), ErrorCode::invalid_argument),
              HasSubstr("toy/gpu/*"));
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
  ASSERT_EQ(choice.decision.explain().candidates.size(), table.size());
  EXPECT_EQ(choice.decision.explain().candidates[0].verdict, "chosen");
  EXPECT_EQ(choice.decision.explain().candidates[1].verdict, "more than 10");
  EXPECT_EQ(choice.decision.explain().candidates[2].verdict, "not deterministic");
  EXPECT_THAT(to_string(choice.decision.explain()), HasSubstr("toy/cpu/atomic: not deterministic"));
}

/// A toy whose kernels take as long as they are told.
struct TimedToy {
  Graph graph;
};
struct PreparedTimedToy {
  std::string name;
};
using TimedKernel = Kernel<TimedToy, PreparedTimedToy>;

template <int index>
std::unique_ptr<const PreparedTimedToy> prepare_named(const TimedToy&) {
  return std::make_unique<const PreparedTimedToy>(
      PreparedTimedToy{"toy/cpu/" + std::to_string(index)});
}
template <int us>
double predicted(const TimedToy&) {
  return us;
}
std::string willing(const TimedToy&) { return {}; }
std::string unwilling(const TimedToy&) { return "never"; }

/// Kernel 2 is slow to start with, 1 is the fastest, 3 is predicted to be hopeless.
class ToyTrial {
 public:
  ToyTrial(const TimedToy&, const Place&) {}
  void run(const PreparedTimedToy& prepared, Stream) {
    runs.push_back(prepared.name);
    const Stopwatch watch;
    const double us = prepared.name == "toy/cpu/1" ? 0 : 2000;
    while (watch.microseconds() < us) {
    }
  }
  static std::string op(const TimedToy&) { return "toy"; }
  static std::string details(const TimedToy&) { return "as it is"; }

  static inline std::vector<std::string> runs;
};

const std::array<TimedKernel, 4> timed_table = {{
    {{"toy/cpu/0", "", "toy", DeviceKind::cpu, true}, unwilling, predicted<1>, prepare_named<0>},
    {{"toy/cpu/1", "", "toy", DeviceKind::cpu, true}, willing, predicted<5000>, prepare_named<1>},
    {{"toy/cpu/2", "", "toy", DeviceKind::cpu, true}, willing, predicted<4000>, prepare_named<2>},
    {{"toy/cpu/3", "", "toy", DeviceKind::cpu, true}, willing, predicted<90000>, prepare_named<3>},
}};

Choice<TimedKernel> made(const PlanOptions& options) {
  return make_choice<ToyTrial>(std::span<const TimedKernel>(timed_table), TimedToy{}, options);
}

/// Kernel 1 is predicted to be the fastest and does not fit.
std::unique_ptr<const PreparedTimedToy> too_large(const TimedToy&) {
  throw Error(ErrorCode::out_of_memory, "no room", "toy", "use a smaller one");
}
const std::array<TimedKernel, 2> large_table = {{
    {{"toy/cpu/1", "", "toy", DeviceKind::cpu, true}, willing, predicted<1>, too_large},
    {{"toy/cpu/2", "", "toy", DeviceKind::cpu, true}, willing, predicted<9>, prepare_named<2>},
}};

TEST(Registry, TakesTheNextKernelWhereTheBestDoesNotFit) {
  const std::span<const TimedKernel> both(large_table);
  const auto choice = make_choice<ToyTrial>(both, TimedToy{}, PlanOptions{});
  EXPECT_EQ(choice.prepared->name, "toy/cpu/2");
  EXPECT_EQ(choice.decision.explain().candidates[0].verdict, "out of memory");
  const auto fails = [&](std::span<const TimedKernel> kernels, const PlanOptions& options) {
    try {
      make_choice<ToyTrial>(kernels, TimedToy{}, options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::out_of_memory;
    }
    return false;
  };
  EXPECT_TRUE(fails(both.first(1), {})) << "there is no other";
  EXPECT_TRUE(fails(both, named("toy/cpu/1"))) << "it was asked for";
}

PlanOptions measuring() {
  PlanOptions options;
  options.tune = Tune::measured;
  return options;
}

TEST(Registry, MeasuresWhatMayBeTheFastest) {
  EXPECT_EQ(made({}).kernel->info.name, "toy/cpu/2") << "by prediction";
  ToyTrial::runs.clear();
  const auto choice = made(measuring());
  EXPECT_EQ(choice.kernel->info.name, "toy/cpu/1");
  EXPECT_EQ(choice.prepared->name, "toy/cpu/1") << "what was prepared of the fastest is kept";
  EXPECT_THAT(ToyTrial::runs, ::testing::Not(::testing::Contains("toy/cpu/3")));
  EXPECT_THAT(ToyTrial::runs, ::testing::Not(::testing::Contains("toy/cpu/0")));
  const std::vector<Candidate> candidates = choice.decision.explain().candidates;
  EXPECT_EQ(candidates[0].verdict, "never");
  EXPECT_EQ(candidates[1].verdict, "chosen");
  EXPECT_GT(candidates[2].measured_us, candidates[1].measured_us);
  EXPECT_THAT(candidates[3].verdict, HasSubstr("over 4 times"));
  EXPECT_THAT(choice.decision.explain().summary, HasSubstr("fastest of 2 timed"));
  EXPECT_THAT(to_string(choice.decision.explain()), HasSubstr("us measured"));
}

TEST(Registry, DoesNotMeasureForAName) {
  ToyTrial::runs.clear();
  PlanOptions options = measuring();
  options.kernel = "toy/cpu/3";
  EXPECT_EQ(made(options).prepared->name, "toy/cpu/3");
  EXPECT_TRUE(ToyTrial::runs.empty());
}

TEST(Registry, TakesAStoredChoiceInsteadOfMeasuring) {
  PlanOptions options = measuring();
  options.store = std::make_shared<PlanStore>();
  EXPECT_EQ(made(options).kernel->info.name, "toy/cpu/1");
  EXPECT_EQ(options.store->size(), 1u);
  ToyTrial::runs.clear();
  options.tune = Tune::predicted;
  options.stored_only = true;
  const auto again = made(options);
  EXPECT_EQ(again.kernel->info.name, "toy/cpu/1");
  EXPECT_EQ(again.prepared->name, "toy/cpu/1");
  EXPECT_GT(again.decision.explain().candidates[1].measured_us, 0) << "what was known then";
  EXPECT_TRUE(ToyTrial::runs.empty());
}

TEST(Registry, AStoredChoiceThatCannotBeHadIsAnError) {
  PlanOptions options;
  options.store = std::make_shared<PlanStore>();
  options.stored_only = true;
  testing::expect_error(ErrorCode::bad_data, {"no stored plan for toy"}, [&] { made(options); });
  const PlanKey key{"toy", fingerprint_text(Graph()), "as it is", device_name({})};
  options.store->remember({key, "toy/cpu/0", {}});
  testing::expect_error(ErrorCode::bad_data, {"toy/cpu/0", "never"}, [&] { made(options); });
  options.store->remember({key, "toy/cpu/*", {}});
  testing::expect_error(ErrorCode::bad_data, {"unknown kernel 'toy/cpu/*'"},
                        [&] { made(options); });
  options.store->remember({key, "toy/cpu/2", {}});
  const std::vector<Candidate> shown = made(options).decision.explain().candidates;
  ASSERT_EQ(shown.size(), 1u) << "what runs is shown, also where the file has no candidates";
  EXPECT_EQ(shown[0].kernel, "toy/cpu/2");
  EXPECT_EQ(shown[0].verdict, "chosen");
  options.store->remember({key, "toy/cpu/gone", {}});
  testing::expect_error(ErrorCode::bad_data, {"toy/cpu/gone"}, [&] { made(options); });
}

/// A toy with two kinds of runs, of which kernel 1 takes only the first.
struct TwoKinds {
  Graph graph;
  bool odd = false;  ///< the second kind
  bool occasional = false;
};
struct PreparedTwoKinds {
  std::string name;
  std::uint32_t other_kinds = 0;
  std::string other_name = {};
};
using KindsKernel = Kernel<TwoKinds, PreparedTwoKinds>;

struct KindsTrial {
  KindsTrial(const TwoKinds&, const Place&) {}
  void run(const PreparedTwoKinds&, Stream) {}
  static std::string op(const TwoKinds&) { return "kinds"; }
  static std::string details(const TwoKinds& problem) { return problem.odd ? "odd" : "even"; }
  static std::vector<OtherRuns<TwoKinds>> other_runs(const TwoKinds& problem) {
    return {{3, "odd numbers", {problem.graph, true, false}}};
  }
  static std::unique_ptr<const PreparedTwoKinds> with_fallback(
      std::unique_ptr<const PreparedTwoKinds> chosen, std::uint32_t kinds,
      std::unique_ptr<const PreparedTwoKinds> fallback) {
    return std::make_unique<const PreparedTwoKinds>(
        PreparedTwoKinds{chosen->name, kinds, fallback->name});
  }
};

template <int index>
std::unique_ptr<const PreparedTwoKinds> prepare_kinds(const TwoKinds&) {
  return std::make_unique<const PreparedTwoKinds>(
      PreparedTwoKinds{"kinds/cpu/" + std::to_string(index)});
}
template <int us>
double predicted_kinds(const TwoKinds&) {
  return us;
}
std::string even_only(const TwoKinds& problem) { return problem.odd ? "even numbers only" : ""; }
std::string never_occasional(const TwoKinds& problem) {
  return problem.occasional ? "too dear" : "";
}
std::string any_kind(const TwoKinds&) { return {}; }

const std::array<KindsKernel, 4> kinds_table = {{
    {{"kinds/cpu/1", "", "kinds", DeviceKind::cpu, true},
     even_only,
     predicted_kinds<1>,
     prepare_kinds<1>},
    {{"kinds/cpu/2", "", "kinds", DeviceKind::cpu, true},
     never_occasional,
     predicted_kinds<2>,
     prepare_kinds<2>},
    {{"kinds/cpu/3", "", "kinds", DeviceKind::cpu, true},
     any_kind,
     predicted_kinds<3>,
     prepare_kinds<3>},
    {{"kinds/cpu/4", "", "kinds", DeviceKind::cpu, true},
     any_kind,
     predicted_kinds<4>,
     prepare_kinds<4>},
}};

Choice<KindsKernel> made_for_kinds(const PlanOptions& options) {
  return make_choice<KindsTrial>(std::span<const KindsKernel>(kinds_table), TwoKinds{}, options);
}

TEST(Registry, ChoosesAnotherKernelForRunsThatTheChosenOneDoesNotTake) {
  const auto choice = made_for_kinds({});
  EXPECT_EQ(choice.kernel->info.name, "kinds/cpu/1");
  EXPECT_EQ(choice.prepared->name, "kinds/cpu/1");
  EXPECT_EQ(choice.prepared->other_kinds, 1u << 3);
  EXPECT_EQ(choice.prepared->other_name, "kinds/cpu/3") << "2 is too dear for occasional runs";
  ASSERT_EQ(choice.decision.explain().children.size(), 1u);
  const Explanation child = choice.decision.explain().children[0];
  EXPECT_EQ(child.name, "runs with odd numbers");
  EXPECT_THAT(child.summary, HasSubstr("kinds/cpu/3"));
  EXPECT_EQ(child.candidates[0].verdict, "even numbers only");
  EXPECT_EQ(child.candidates[1].verdict, "too dear");
  EXPECT_EQ(child.candidates[2].verdict, "chosen");
  EXPECT_THAT(
      to_string(choice.decision.explain()),
      HasSubstr("\n  runs with odd numbers: kinds/cpu/3: 3.0 us predicted\n    kinds/cpu/1"));
}

TEST(Registry, NeedsNoOtherWhereTheKernelTakesEveryRun) {
  const auto choice = made_for_kinds(named("kinds/cpu/2"));
  EXPECT_EQ(choice.prepared->other_kinds, 0u);
  EXPECT_TRUE(choice.decision.explain().children.empty());
}

TEST(Registry, LetsAKernelThatWasAskedForFallBackAsWell) {
  const auto choice = made_for_kinds(named("kinds/cpu/1"));
  EXPECT_EQ(choice.prepared->name, "kinds/cpu/1");
  EXPECT_EQ(choice.prepared->other_name, "kinds/cpu/3");
}

TEST(Registry, KeepsTheFallbackInTheStoreAsAChoiceOfItsOwn) {
  PlanOptions options;
  options.store = std::make_shared<PlanStore>();
  EXPECT_EQ(made_for_kinds(options).prepared->other_name, "kinds/cpu/3");
  EXPECT_EQ(options.store->size(), 2u);
  const PlanKey key{"kinds", fingerprint_text(Graph()), "odd", device_name({})};
  options.store->remember({key, "kinds/cpu/4", {}});
  options.stored_only = true;
  const auto again = made_for_kinds(options);
  EXPECT_EQ(again.prepared->other_name, "kinds/cpu/4");
  EXPECT_THAT(again.decision.explain().children[0].summary, HasSubstr("stored choice"));
}

TEST(Registry, SaysWhatDidNotFitIntoMemory) {
  const std::span<const TimedKernel> both(large_table);
  const auto choice = make_choice<ToyTrial>(both, TimedToy{}, PlanOptions{});
  EXPECT_THAT(choice.decision.explain().summary, HasSubstr("toy/cpu/1 did not fit into memory"));
}

TEST(Registry, SaysWhenTimingPays) {
  PlanOptions options = measuring();
  options.epochs = 77;
  const auto choice = made(options);
  EXPECT_THAT(choice.decision.explain().summary, HasSubstr("timing took"));
  EXPECT_THAT(choice.decision.explain().summary, HasSubstr("77 are planned"));
}

}  // namespace
}  // namespace tessera::ops
