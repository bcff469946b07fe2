// SPDX-License-Identifier: Apache-2.0
#include "graph/cut.hpp"

#include <vector>

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

TEST(Cutter, NumbersTheSlotsOfPartsAndSkipsWhatStaysWhole) {
  Cutter cutter;
  EXPECT_TRUE(cutter.cut(EqualParts::of_at_most(0, 5)).is_whole());
  EXPECT_TRUE(cutter.cut(EqualParts::of_at_most(5, 5)).is_whole());
  EXPECT_EQ(cutter.num_slots(), 0);
  EXPECT_EQ(cutter.cut(EqualParts::of_at_most(6, 5)).first_slot(), 0);
  const Cut cut = cutter.cut(EqualParts::of_at_most(11, 5));
  EXPECT_EQ(cut.first_slot(), 2);
  EXPECT_EQ(cut.num_slots(), 3);
  EXPECT_EQ(cutter.num_slots(), 5);
  std::vector<EdgeOffset> begins;
  std::vector<std::int32_t> slots;
  cut.for_parts([&](const CutPart& part) {
    begins.push_back(part.begin);
    slots.push_back(part.slot);
  });
  EXPECT_EQ(begins, (std::vector<EdgeOffset>{0, 3, 7}));
  EXPECT_EQ(slots, (std::vector<std::int32_t>{2, 3, 4}));
}

TEST(Cutter, GivesOnePartWithoutASlotToWhatStaysWhole) {
  Cutter cutter;
  int parts = 0;
  cutter.cut(EqualParts(0, 1)).for_parts([&](const CutPart& part) {
    EXPECT_EQ(part.begin, 0);
    EXPECT_EQ(part.end, 0);
    EXPECT_EQ(part.slot, -1);
    ++parts;
  });
  EXPECT_EQ(parts, 1);
}

}  // namespace
}  // namespace tessera
