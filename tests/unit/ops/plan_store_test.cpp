// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/plan_store.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/shared_plans.hpp"

namespace tessera::ops {
namespace {

PlanKey key(const std::string& graph = "00000000000000aa", const std::string& device = "a GPU") {
  return {"spmm", graph, "features 16, fp32, sum, pattern", device};
}

StoredChoice choice(const PlanKey& of) {
  return {of,
          "spmm/cpu/rows",
          {{"spmm/cpu/rows", "chosen", 12.5, 11}, {"spmm/cpu/tiles", "slower by 3.0 us", 9, 14}}};
}

TEST(PlanStore, FindsWhatItRemembers) {
  PlanStore store;
  EXPECT_FALSE(store.find(key()).has_value());
  store.remember(choice(key()));
  StoredChoice other = choice(key());
  other.kernel = "spmm/cpu/tiles";
  store.remember(other);
  EXPECT_EQ(store.size(), 1u) << "the same key replaces";
  EXPECT_EQ(store.require(key()).kernel, "spmm/cpu/tiles");
}

TEST(PlanStore, ComesBackFromAFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "some.plans";
  PlanStore store;
  store.remember(choice(key()));
  store.remember(choice(key("00000000000000bb")));
  store.save(path);
  const PlanStore loaded = PlanStore::load(path);
  EXPECT_EQ(loaded.size(), 2u);
  const StoredChoice found = loaded.require(key("00000000000000bb"));
  EXPECT_EQ(found.kernel, "spmm/cpu/rows");
  ASSERT_EQ(found.candidates.size(), 2u);
  EXPECT_EQ(found.candidates[1].verdict, "slower by 3.0 us");
  EXPECT_EQ(found.candidates[0].predicted_us, 12.5);
  EXPECT_EQ(found.candidates[1].measured_us, 14);
}

TEST(PlanStore, SaysWhatItHasInstead) {
  PlanStore store;
  const auto expect_problem = [&](const PlanKey& wanted, const std::string& words) {
    testing::expect_error(ErrorCode::bad_data, {words}, [&] { store.require(wanted); });
  };
  expect_problem(key(), "empty");
  store.remember(choice(key()));
  expect_problem(key("00000000000000bb"), "another graph");
  expect_problem(key("00000000000000aa", "another GPU"), "another device (a GPU, not another GPU)");
  PlanKey wider = key();
  wider.details = "features 17, fp32, sum, pattern";
  expect_problem(wider, "features 16");
}

TEST(PlanStore, RejectsFilesOfOthers) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "bad.plans";
  const auto expect_bad = [&](const std::string& text, const std::string& words) {
    test::write_file(path, text);
    testing::expect_error(ErrorCode::bad_data, {words}, [&] { PlanStore::load(path); });
  };
  expect_bad("hello\n", "not a file of plans");
  expect_bad("tessera plans\t7\n", "format 7");
  expect_bad("tessera plans\t1\nchoice\tspmm\n", "line 2");
  expect_bad("tessera plans\t1\ncandidate\ta\t1\t1\tchosen\n", "line 2");
  expect_bad("tessera plans\t1\nchoice\ta\tb\tc\td\te\ncandidate\ta\tx\t1\tchosen\n", "'x'");
  expect_bad("tessera plans\t1\nchoice\ta\tb\tc\td\te\ncandidate\ta\t-1\t1\tchosen\n", "'-1'");
  testing::expect_error(ErrorCode::io, {}, [&] { PlanStore::load(folder / "missing.plans"); });
}

TEST(PlanStore, RejectsChoicesOfNothingAndOfTwoThings) {
  const auto expect_bad = [](const std::string& lines, const std::string& words) {
    testing::expect_error(ErrorCode::bad_data, {words, "p, line "},
                          [&] { PlanStore::parse("tessera plans\t1\n" + lines, "p"); });
  };
  expect_bad("choice\ta\tb\tc\td\t\n", "empty kernel");
  expect_bad("choice\t\tb\tc\td\te\n", "empty op");
  expect_bad("choice\ta\tb\tc\t\te\n", "empty device");
  expect_bad("choice\ta\tb\tc\td\te\ncandidate\t\t1\t1\tslow\n", "empty kernel");
  expect_bad("choice\ta\tb\tc\td\te\ncandidate\tf\t1\t1\tchosen\n", "the choice is 'e'");
  expect_bad("choice\ta\tb\tc\td\te\nchoice\ta\tb\tc\td\tf\n", "a second choice");
}

TEST(PlanStore, MergesIntoAFileAndLeavesItsChoices) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "some.plans";
  PlanStore first, second;
  first.remember(choice(key()));
  merge_plans(first, path);
  StoredChoice other = choice(key());
  other.kernel = "spmm/cpu/tiles";
  other.candidates.clear();
  second.remember(other);
  second.remember(choice(key("00000000000000bb")));
  merge_plans(second, path);
  const PlanStore merged = PlanStore::load(path);
  EXPECT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged.require(key()).kernel, "spmm/cpu/rows") << "what the file had";
  EXPECT_EQ(folder.num_files(), 1u) << "no lock is left";
}

TEST(PlanStore, LosesNothingOfManyThatMergeAtOnce) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "shared.plans";
  test::write_file(folder / ".tessera-shared.plans.lock", "");  // of a process that was killed
  constexpr int writers = 8, rounds = 5;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      for (int round = 0; round < rounds; ++round) {
        PlanStore store;
        store.remember(choice(key(std::to_string(100 * writer + round))));
        merge_plans(store, path);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(PlanStore::load(path).size(), std::size_t{writers * rounds});
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(PlanStore, DoesNotMergeIntoWhatIsNoFileOfPlans) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "precious", "precious");
  testing::expect_error(ErrorCode::bad_data, {"not a file of plans"},
                        [&] { merge_plans(PlanStore(), folder / "precious"); });
  EXPECT_EQ(test::read_file(folder / "precious"), "precious");
  EXPECT_EQ(folder.num_files(), 1u);
  testing::expect_error(ErrorCode::io, {}, [&] { merge_plans(PlanStore(), folder / "no/such"); });
}

}  // namespace
}  // namespace tessera::ops
