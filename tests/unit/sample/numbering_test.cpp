// SPDX-License-Identifier: Apache-2.0
#include "sample/numbering.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "support/random_coo.hpp"

namespace tessera::sample {
namespace {

using testing::ThreadScope;

template <class Key>
class NumberingTest : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(NumberingTest, Keys);

TYPED_TEST(NumberingTest, NumbersInTheOrderOfAppearance) {
  for (const std::uint64_t different : {1, 40, 5000, 2000000}) {
    for (const int threads : {1, 2, 8}) {
      const ThreadScope scope(threads);
      const std::uint64_t seed = 31;
      const Random random(seed);
      std::vector<TypeParam> appeared{7, 7, 1};
      std::map<TypeParam, VertexId> expected{{7, 0}, {1, 2}};
      Numbering<TypeParam> numbering(3);
      numbering.start(appeared);
      // Hops short and long, so that tables grow in either way.
      for (const std::uint64_t size : {0, 10, 50000, 3, 100000, 20000}) {
        std::vector<TypeParam> keys;
        std::vector<VertexId> numbers(size), wanted;
        for (std::uint64_t i = 0; i < size; ++i) {
          auto key = static_cast<TypeParam>(random.below(size * 1000000 + i, different));
          if (sizeof(key) == 8) key = static_cast<TypeParam>(std::uint64_t{key} << 30);
          keys.push_back(key);
        }
        std::vector<TypeParam> wanted_appeared = appeared;
        for (const TypeParam key : keys) {
          const auto [place, is_new] =
              expected.emplace(key, static_cast<VertexId>(wanted_appeared.size()));
          if (is_new) wanted_appeared.push_back(key);
          wanted.push_back(place->second);
        }
        numbering.number(keys, numbers, appeared);
        ASSERT_EQ(numbers, wanted) << threads << " threads, seed " << seed;
        ASSERT_EQ(appeared, wanted_appeared);
        ASSERT_EQ(numbering.count(), std::ssize(appeared));
      }
    }
  }
}

}  // namespace
}  // namespace tessera::sample
