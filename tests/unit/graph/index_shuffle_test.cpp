// SPDX-License-Identifier: Apache-2.0
#include "graph/index_shuffle.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

TEST(IndexShuffle, MeetsEveryNumberOnce) {
  for (const std::uint64_t size : {0u, 1u, 2u, 3u, 15u, 16u, 17u, 100u, 101u, 4096u, 99991u}) {
    SCOPED_TRACE(size);
    const IndexShuffle shuffle(size, Random(5));
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t element = shuffle(i);
      ASSERT_LT(element, size);
      ASSERT_FALSE(seen[element]);
      seen[element] = true;
    }
  }
}

TEST(IndexShuffle, StaysInRangeAtTheLargestSize) {
  const std::uint64_t size = std::uint64_t{1} << 62;
  const IndexShuffle shuffle(size, Random(5));
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_LT(shuffle(i), size);
    EXPECT_LT(shuffle(size - 1 - i), size);
  }
}

// Each element should come to each tenth of the places equally often, neighbours independently.
TEST(IndexShuffle, LooksRandom) {
  constexpr std::uint64_t size = 1000;
  constexpr int seeds = 2000;
  std::array<int, 10> tenth_of_first{};
  int rising = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const IndexShuffle shuffle(size, Random(seed));
    ++tenth_of_first[shuffle(0) / 100];
    rising += shuffle(1) < shuffle(2) ? 1 : 0;
  }
  for (const int times : tenth_of_first) EXPECT_NEAR(times, seeds / 10, 60);
  EXPECT_NEAR(rising, seeds / 2, 150);
}

}  // namespace
}  // namespace tessera
