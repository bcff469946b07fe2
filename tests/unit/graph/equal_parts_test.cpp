// SPDX-License-Identifier: Apache-2.0
#include "graph/equal_parts.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(EqualParts, CoverEverythingOnceAndAreEqual) {
  for (const EdgeOffset length : {0, 1, 2, 7, 31, 32, 33, 1000}) {
    for (const EdgeOffset most : {1, 2, 5, 32, 999}) {
      const EqualParts parts = EqualParts::of_at_most(length, most);
      EdgeOffset end = 0;
      for (EdgeOffset part = 0; part < parts.count(); ++part) {
        EXPECT_EQ(parts.begin(part), end);
        end = parts.end(part);
        const EdgeOffset size = end - parts.begin(part);
        EXPECT_LE(size, most);
        EXPECT_GE(size, length / parts.count());
        EXPECT_LE(size, length / parts.count() + 1);
      }
      EXPECT_EQ(end, length);
      EXPECT_EQ(parts.count(), (length + most - 1) / most);
    }
  }
}

TEST(EqualParts, OfAGivenNumberMayBeEmpty) {
  const EqualParts parts(2, 3);
  EXPECT_EQ(parts.end(0), 0);
  EXPECT_EQ(parts.end(1), 1);
  EXPECT_EQ(parts.end(2), 2);
}

}  // namespace
}  // namespace tessera
