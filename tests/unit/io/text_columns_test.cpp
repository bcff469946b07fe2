// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/table_columns.hpp"

/// Columns that are in memory, as GraphML has them.
namespace tessera::io {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> all(const Names& names) {
  std::vector<std::string> list;
  for (std::int64_t i = 0; i < names.size(); ++i) list.emplace_back(names[i]);
  return list;
}

TEST(TextColumns, AreReadAsThoseOfATable) {
  Dataset dataset;
  add_columns({{"age", {"3", "na", "5"}},
               {"active", {"TRUE", "False", ""}},
               {"colour", {"red", "N/A", "red"}},
               {"size", {"1", "1", "large"}},
               {"label", {"x", "y", "x"}}},
              dataset);
  EXPECT_THAT(all(dataset.feature_names),
              ElementsAre("age", "active", "colour=red", "size=1", "size=large"));
  EXPECT_THAT(dataset.category_prefixes.span(), ElementsAre(-1, -1, 6, 4, 4));
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(),
              ElementsAre(3, 1, 1, 1, 0, 4, 0, 0, 1, 0, 5, 0.5f, 1, 0, 1));
  EXPECT_THAT(dataset.filled_cells.span(), ElementsAre(5, 11));
  EXPECT_THAT(all(dataset.class_names), ElementsAre("x", "y"));
  EXPECT_THAT(
      dataset.notes,
      UnorderedElementsAre(
          "labels: 'label', 2 classes: 'x' and 'y'",
          "numbers: 'age' and 'active' (true is 1, false 0)",
          "categories: a feature for each different value of 'size' (2, as 'large' is no "
          "number) and 'colour' (1; 1 missing)",
          AllOf(HasSubstr("filled in"), HasSubstr("'age' (1 with 4) and 'active' (1 with 0.5)"))));
}

TEST(TextColumns, WhatIsLeftOutIsSaid) {
  Dataset dataset;
  add_columns(
      {{"class", {"0.5", "1", "2"}}, {"text", {"some", "prose", "here"}}, {"y", {"1", "2", "3"}}},
      dataset);
  EXPECT_THAT(all(dataset.feature_names), ElementsAre("y"));
  EXPECT_THAT(dataset.targets.matrix->span(), ElementsAre(0.5f, 1, 2));
  EXPECT_THAT(
      dataset.notes,
      UnorderedElementsAre("labels: 'class', numbers to predict", HasSubstr("left out: 'text'"),
                           "numbers: 'y'", AllOf(HasSubstr("called as labels"), HasSubstr("'y'"))));
}

TEST(TextColumns, TruthValuesAreClassesByName) {
  Dataset dataset;
  add_columns({{"label", {"TRUE", "false", "", "true"}}}, dataset);
  EXPECT_THAT(all(dataset.class_names), ElementsAre("false", "true"));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(1, 0, -1, 1));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("1 of 4 vertices has no label")));
}

}  // namespace
}  // namespace tessera::io
