// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tessera/core/error.hpp"
#include "tessera/core/random.hpp"
#include "tessera/data/time_split.hpp"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> vertices(static_cast<std::size_t>(count));
  std::iota(vertices.begin(), vertices.end(), 0);
  return vertices;
}

std::string error_of(const std::vector<std::int64_t>& vertices, const std::vector<double>& times,
                     const TimeShares& shares = {}) {
  try {
    split_by_time(vertices, times, shares);
  } catch (const Error& error) {
    EXPECT_FALSE(error.fix().empty()) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(TimeSplit, TheLatestAreForTheTest) {
  const std::vector<double> times = {50, 10, 40, 20, 30};
  const VertexSplit split = split_by_time(first(5), times);
  EXPECT_THAT(split.train.span(), ElementsAre(1, 3, 4));
  EXPECT_THAT(split.validation.span(), ElementsAre(2));
  EXPECT_THAT(split.test.span(), ElementsAre(0));
}

TEST(TimeSplit, OnlyTheVerticesGivenAreSplit) {
  const std::vector<double> times = {1, std::numeric_limits<double>::quiet_NaN(), 2, 3};
  const VertexSplit split =
      split_by_time(std::vector<std::int64_t>{3, 0, 2}, times, {0.34, 0.33, 0.33});
  EXPECT_THAT(split.train.span(), ElementsAre(0));
  EXPECT_THAT(split.validation.span(), ElementsAre(2));
  EXPECT_THAT(split.test.span(), ElementsAre(3));
}

TEST(TimeSplit, VerticesOfOneTimeStayTogether) {
  // The middle of the five of year 2 is at 0.45, that of the three of year 3 at 0.85.
  const std::vector<double> times = {1, 1, 2, 2, 2, 2, 2, 3, 3, 3};
  const VertexSplit split = split_by_time(first(10), times, {0.4, 0.4, 0.2});
  EXPECT_THAT(split.train.span(), ElementsAre(0, 1));
  EXPECT_THAT(split.validation.span(), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(split.test.span(), ElementsAre(7, 8, 9));
}

TEST(TimeSplit, WhatSharesLackIsLeftOutOfTheEarliest) {
  std::vector<double> times(10);
  std::iota(times.begin(), times.end(), 2000.0);
  const VertexSplit split = split_by_time(first(10), times, {0.5, 0.2, 0.1});
  EXPECT_THAT(split.train.span(), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(split.validation.span(), ElementsAre(7, 8));
  EXPECT_THAT(split.test.span(), ElementsAre(9));
}

TEST(TimeSplit, PartsFollowEachOtherInTime) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Random random(seed);
    const auto count = static_cast<std::int64_t>(20 + random.below(0, 200));
    std::vector<double> times;
    for (std::int64_t v = 0; v < count; ++v) {
      times.push_back(static_cast<double>(random.below(static_cast<std::uint64_t>(v) + 1, 30)) -
                      10);
    }
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const VertexSplit split = split_by_time(first(count), times, {0.5, 0.25, 0.25});
    EXPECT_EQ(split.train.size() + split.validation.size() + split.test.size(), count);
    const auto at = [&](std::int64_t v) { return times[static_cast<std::size_t>(v)]; };
    const auto last = [&](const auto& part) {
      return at(*std::max_element(part.begin(), part.end(),
                                  [&](auto a, auto b) { return at(a) < at(b); }));
    };
    const auto earliest = [&](const auto& part) {
      return at(*std::min_element(part.begin(), part.end(),
                                  [&](auto a, auto b) { return at(a) < at(b); }));
    };
    EXPECT_LT(last(split.train), earliest(split.validation));
    EXPECT_LT(last(split.validation), earliest(split.test));
    EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  }
}

TEST(TimeSplit, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(error_of(first(4), {1, 1, 1, 1}), HasSubstr("4 vertices have 1 different times"));
  EXPECT_THAT(error_of(first(5), {1, 1, 1, 1, 2}), HasSubstr("validation part is empty"));
  EXPECT_THAT(error_of({}, {}), HasSubstr("training part is empty"));
  EXPECT_THAT(error_of(first(3), {1, 2}), HasSubstr("vertex 2 is none of the 2"));
  EXPECT_THAT(error_of(first(3), {1, std::numeric_limits<double>::infinity(), 2}),
              HasSubstr("the time of vertex 1 is inf"));
  EXPECT_THAT(error_of(first(3), {1, 2, 3}, {0.5, 0.5, 0.5}), HasSubstr("0.5, 0.5, 0.5"));
  EXPECT_THAT(error_of(first(3), {1, 2, 3}, {0.5, 0, 0.5}), HasSubstr("positive"));
  EXPECT_THAT(error_of(first(3), {1, 2, 3}, {std::numeric_limits<double>::quiet_NaN(), 1, 1}),
              HasSubstr("nan"));
}

}  // namespace
}  // namespace tessera
