// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/io/edge_list.hpp"

#include "io/time_column.hpp"
#include "support/files.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

double seconds(const char* text) {
  const auto time = io::parse_time(text);
  EXPECT_TRUE(time && time->is_date) << text;
  return time ? time->value : 0;
}

TEST(ParseTime, TakesNumbers) {
  for (const auto& [text, value] : {std::pair("2017", 2017.0),
                                    {"-3.5", -3.5},
                                    {"+4", 4.0},
                                    {"1e3", 1000.0},
                                    {"1700000000123", 1700000000123.0}}) {
    const auto time = io::parse_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->value, value);
    EXPECT_FALSE(time->is_date);
  }
}

TEST(ParseTime, TakesDatesAsTheStandardWritesThem) {
  EXPECT_EQ(seconds("1970-01-01"), 0);
  EXPECT_EQ(seconds("1969-12-31"), -86400);
  EXPECT_EQ(seconds("2024-02-29"), 1709164800);
  EXPECT_EQ(seconds("2024-02-29T12:30"), 1709164800 + 45000);
  EXPECT_EQ(seconds("2024-02-29 12:30:05.25"), 1709164800 + 45005.25);
  EXPECT_EQ(seconds("2024-02-29T12:30:05Z"), 1709164800 + 45005);
  EXPECT_EQ(seconds("2024-02-29T12:30:05+02:00"), 1709164800 + 45005 - 7200);
  EXPECT_EQ(seconds("2024-02-29T12:30:05-0530"), 1709164800 + 45005 + 19800);
}

TEST(ParseTime, RefusesTheRest) {
  for (const char* const text :
       {"", "x", "nan", "inf", "2024-13-01", "2023-02-29", "2024-02", "24-02-29", "2024-02-29x",
        "2024-02-29T", "2024-02-29T25:00", "2024-02-29T12:61", "2024-02-29T12:30:05+",
        "2024-02-29T12:30:05Zz", "2024/02/29", "31.12.2024", "1,5", "+", "++1"}) {
    EXPECT_FALSE(io::parse_time(text)) << text;
  }
}

class TimeColumn : public testing::Test {
 protected:
  Dataset read(const std::string& nodes) {
    test::write_file(folder_ / "nodes.csv", nodes);
    test::write_file(folder_ / "edges.csv", "source,target\na,b\nb,c\n");
    options_.nodes.path = folder_ / "nodes.csv";
    options_.nodes.time = "year";
    return io::read_edge_list(folder_ / "edges.csv", options_);
  }
  std::string error_of(const std::string& nodes) {
    try {
      read(nodes);
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
  io::ReadOptions options_;
};

TEST_F(TimeColumn, SplitsAndIsNoFeature) {
  const Dataset dataset =
      read("id,year,x,label\na,2016,1,0\nb,2012,2,1\nc,2015,3,1\nd,2011,4,0\ne,2014,5,1\n");
  EXPECT_THAT(dataset.train.span(), ElementsAre(1, 3, 4));
  EXPECT_THAT(dataset.validation.span(), ElementsAre(2));
  EXPECT_THAT(dataset.test.span(), ElementsAre(0));
  EXPECT_EQ(dataset.feature_names, Names({"x"}));
  EXPECT_THAT(dataset.notes, Contains("split: by the times in 'year', 3 vertices up to 2014 to "
                                      "train, 1 up to 2015 to validate, 1 up to 2016 to test"));
  EXPECT_THAT(dataset.notes, Not(Contains(HasSubstr("no split"))));
}

TEST_F(TimeColumn, VerticesWithoutALabelTakeNoPart) {
  options_.nodes.time_shares = {0.34, 0.33, 0.33};
  const Dataset dataset =
      read("id,year,label\na,2016-01-01,x\nb,2012-05-01,y\nc,2015-01-01,\nd,2011-01-01,x\n");
  EXPECT_THAT(dataset.train.span(), ElementsAre(3));
  EXPECT_THAT(dataset.validation.span(), ElementsAre(1));
  EXPECT_THAT(dataset.test.span(), ElementsAre(0));
}

TEST_F(TimeColumn, TakesThePlaceOfAColumnThatSplits) {
  const Dataset dataset =
      read("id,year,split,x\na,1,test,1\nb,2,test,2\nc,3,train,3\nd,4,val,4\ne,5,val,5\n");
  EXPECT_THAT(dataset.test.span(), ElementsAre(4));
  EXPECT_EQ(dataset.feature_names, Names({"x"}));
  EXPECT_THAT(dataset.notes, Contains("left out: 'split'"));
  options_.nodes.split = "split";
  EXPECT_THAT(error_of("id,year,split,x\na,1,test,1\n"), HasSubstr("--split-by-time"));
}

TEST_F(TimeColumn, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("id,year\na,1\nb,NA\nc,3\n"),
              AllOf(HasSubstr("nodes.csv: line 3"), HasSubstr("no time in column 'year'")));
  EXPECT_THAT(error_of("id,year\na,1\nb,\nc,3\n"), HasSubstr("no time"));
  EXPECT_THAT(error_of("id,year\na,1\nb,soon\nc,3\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("'soon' in column 'year' is no time")));
  EXPECT_THAT(error_of("id,year\na,1\nb,2\nc,2011-01-01\n"),
              HasSubstr("numbers and dates: rows 2 and 3 differ"));
  EXPECT_THAT(error_of("id,year\na,1\nb,1\nc,1\n"), HasSubstr("3 vertices have 1 different times"));
  EXPECT_THAT(error_of("id,when\na,1\n"), HasSubstr("no column 'year'"));
}

}  // namespace
}  // namespace tessera
