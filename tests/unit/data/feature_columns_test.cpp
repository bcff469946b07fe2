// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/feature_columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::IsEmpty;

TEST(FeatureColumns, JoinTheCategoriesOfAColumn) {
  const Names names({"age", "colour=blue", "colour=red", "kind=red", "a=b", "=x"});
  const SharedArray<std::int32_t> prefixes = std::vector<std::int32_t>{-1, 6, 6, 4, -1, 0};
  validate_feature_columns(names, prefixes);
  const std::vector<FeatureColumn> columns = feature_columns(names, prefixes);
  ASSERT_EQ(columns.size(), 5u);
  EXPECT_EQ(columns[0].name, "age");
  EXPECT_FALSE(columns[0].has_categories());
  EXPECT_EQ(columns[1].name, "colour");
  EXPECT_EQ(columns[1].first, 1);
  EXPECT_THAT(columns[1].categories, ElementsAre("blue", "red"));
  EXPECT_EQ(columns[2].first, 3);
  EXPECT_EQ(columns[3].name, "a=b") << "a number, whatever its name";
  EXPECT_THAT(columns[3].categories, IsEmpty());
  EXPECT_EQ(columns[4].name, "");
  EXPECT_THAT(columns[4].categories, ElementsAre("x"));
}

TEST(FeatureColumns, WithoutPrefixesAllAreNumbers) {
  EXPECT_EQ(feature_columns(Names({"a=1", "a=2"}), {}).size(), 2u);
  EXPECT_THAT(feature_columns({}, {}), IsEmpty());
}

TEST(FeatureColumns, PrefixesThatFitNoNameAreAnError) {
  const Names names({"age", "colour=red"});
  for (const std::vector<std::int32_t>& wrong : std::vector<std::vector<std::int32_t>>{
           {-1}, {-1, 5}, {-1, 10}, {-1, 2000000000}, {-2, 6}, {3, 6}, {-1, 6, -1}}) {
    expect_error(ErrorCode::bad_data, {"category_prefix"},
                 [&] { validate_feature_columns(names, wrong); });
  }
  expect_error(ErrorCode::bad_data, {},
               [] { validate_feature_columns({}, std::vector<std::int32_t>{-1}); });
}

}  // namespace
}  // namespace tessera
