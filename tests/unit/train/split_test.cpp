// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "support/expect_error.hpp"

namespace tessera::train {
namespace {

using testing::expect_error;

std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> items(static_cast<std::size_t>(count));
  std::iota(items.begin(), items.end(), std::int64_t{10});
  return items;
}

std::set<std::int64_t> all_of(const Split& split) {
  std::set<std::int64_t> all(split.train.begin(), split.train.end());
  all.insert(split.validation.begin(), split.validation.end());
  all.insert(split.test.begin(), split.test.end());
  return all;
}

std::size_t size_of(const Split& split) {
  return split.train.size() + split.validation.size() + split.test.size();
}

TEST(RandomSplit, parts_are_disjoint_and_of_the_asked_size) {
  const Split split = random_split(numbers(100), {0.6, 0.2, 0.2}, 1);
  EXPECT_EQ(split.train.size(), 60u);
  EXPECT_EQ(split.validation.size(), 20u);
  EXPECT_EQ(split.test.size(), 20u);
  EXPECT_EQ(all_of(split).size(), 100u);
  EXPECT_EQ(split, random_split(numbers(100), {0.6, 0.2, 0.2}, 1));
  EXPECT_NE(split, random_split(numbers(100), {0.6, 0.2, 0.2}, 2));
}

TEST(RandomSplit, every_part_gets_something) {
  for (const std::int64_t count : {3, 4, 5, 17}) {
    const Split split = random_split(numbers(count), {0.98, 0.01, 0.01}, 3);
    EXPECT_FALSE(split.train.empty());
    EXPECT_FALSE(split.validation.empty());
    EXPECT_FALSE(split.test.empty());
    EXPECT_EQ(all_of(split).size(), size_of(split)) << count;
  }
}

TEST(RandomSplit, impossible_requests) {
  expect_error(ErrorCode::invalid_argument, {"2 labelled items"},
               [] { random_split(numbers(2), {}, 1); });
  expect_error(ErrorCode::invalid_argument, {"sum to at most 1"}, [] {
    random_split(numbers(9), {0.6, 0.3, 0.2}, 1);
  });
  for (const SplitShares& shares : {SplitShares{0.6, 0, 0.2}, {0, 0.2, 0.2}, {0.6, 0.3, -0.1}}) {
    expect_error(ErrorCode::invalid_argument, {"positive shares"},
                 [&] { random_split(numbers(9), shares, 1); });
  }
  expect_error(ErrorCode::invalid_argument, {"at least 2"}, [] {
    random_split(numbers(1), {0.8, 0.2, 0}, 1);
  });
}

TEST(RandomSplit, a_test_share_of_0_gives_no_test_part) {
  for (const std::int64_t count : {2, 3, 15, 100}) {
    const Split split = random_split(numbers(count), {0.8, 0.2, 0}, 3);
    EXPECT_FALSE(split.train.empty());
    EXPECT_FALSE(split.validation.empty());
    EXPECT_TRUE(split.test.empty());
    EXPECT_EQ(all_of(split).size(), static_cast<std::size_t>(count));
  }
}

TEST(FoldSplit, folds_cover_every_labelled_item_once) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 101; ++i) labels.push_back(i % 7 == 0 ? -1 : i % 3);
  const auto labelled = std::count_if(labels.begin(), labels.end(), [](auto l) { return l >= 0; });
  std::multiset<std::int64_t> tested;
  for (std::int64_t fold = 0; fold < 10; ++fold) {
    const Split split = fold_split(labels, 10, fold, 4);
    EXPECT_EQ(size_of(split), static_cast<std::size_t>(labelled));
    EXPECT_EQ(all_of(split).size(), size_of(split));
    EXPECT_EQ(split.validation, fold_split(labels, 10, (fold + 9) % 10, 4).test);
    tested.insert(split.test.begin(), split.test.end());
  }
  EXPECT_EQ(tested.size(), static_cast<std::size_t>(labelled));
  EXPECT_EQ(std::set<std::int64_t>(tested.begin(), tested.end()).size(), tested.size());
}

TEST(FoldSplit, classes_are_spread_evenly) {
  std::vector<std::int64_t> labels(100, 0);
  std::fill(labels.begin(), labels.begin() + 20, 1);
  for (std::int64_t fold = 0; fold < 10; ++fold) {
    const Split split = fold_split(labels, 10, fold, 1);
    const auto rare = std::count_if(split.test.begin(), split.test.end(),
                                    [](std::int64_t item) { return item < 20; });
    EXPECT_EQ(rare, 2);
  }
}

TEST(FoldSplit, impossible_requests) {
  const std::vector<std::int64_t> labels{0, 1, 0, 1};
  for (const std::int64_t folds : {0, 2, 5}) {
    expect_error(ErrorCode::invalid_argument, {"folds"}, [&] { fold_split(labels, folds, 0, 1); });
  }
  expect_error(ErrorCode::invalid_argument, {"fold 3"}, [&] { fold_split(labels, 3, 3, 1); });
}

}  // namespace
}  // namespace tessera::train
