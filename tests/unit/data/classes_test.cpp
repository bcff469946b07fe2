// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/classes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Labels = std::vector<std::int64_t>;

TEST(ClassValues, are_the_numbers_in_use) {
  EXPECT_THAT(class_values(Labels{}), IsEmpty());
  EXPECT_THAT(class_values(Labels{2, 0, 1, 0}), ElementsAre(0, 1, 2));
  EXPECT_THAT(class_values(Labels{1'000'000, 5, 5}), ElementsAre(5, 1'000'000));
  EXPECT_THAT(class_values(Labels{3, 1, 0}), ElementsAre(0, 1, 3));
}

TEST(ClassValues, minus_one_is_no_label_unless_one_is_all_there_is_beside_it) {
  EXPECT_THAT(class_values(Labels{-1, 0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(class_values(Labels{-1, 1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(class_values(Labels{1, -1, 1}), ElementsAre(-1, 1));
  EXPECT_THAT(class_values(Labels{-1, -1}), IsEmpty());
  EXPECT_THAT(class_values(Labels{-1, 5}), ElementsAre(5));
  EXPECT_THAT(class_values(Labels{1, 1}), ElementsAre(1));
}

TEST(ClassValues, place_items) {
  const Labels labels{7, -1, 3, 7};
  const Labels values = class_values(labels);
  EXPECT_EQ(class_of(7, values), 1);
  EXPECT_EQ(class_of(-1, values), -1);
  EXPECT_EQ(class_of(4, values), -1);
  EXPECT_THAT(labelled_items(labels, values), ElementsAre(0, 2, 3));
  EXPECT_THAT(labelled_items(Labels{-1, 1}, {-1, 1}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace tessera
