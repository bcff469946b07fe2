// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/matrix_market.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "support/datasets.hpp"
#include "support/files.hpp"
#include "support/gzipped.hpp"

namespace tessera {
namespace {

using test::gzipped;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MatrixMarket : public testing::Test {
 protected:
  Dataset read(const std::string& text, Duplicates duplicates = Duplicates::reject) {
    test::write_file(folder_ / "a.mtx", text);
    return io::read_matrix_market(folder_ / "a.mtx", {.duplicates = duplicates});
  }
  /// The whole error line, which must begin with the file's name.
  std::string error_of(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(folder_ / "a.mtx"));
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
};

TEST_F(MatrixMarket, GeneralPattern) {
  const Dataset dataset =
      read("%%MatrixMarket matrix coordinate pattern general\n% note\n\n2 3 2\n2 1\n1 3\n");
  EXPECT_EQ(dataset.name, "a");
  EXPECT_EQ(dataset.edges_stored, 2);
  EXPECT_EQ(dataset.graph.num_cols(), 3);
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 1, 2));
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(2, 0));
  EXPECT_FALSE(dataset.graph.has_values());
}

TEST_F(MatrixMarket, RealValuesInEverySpelling) {
  const Dataset dataset = read(
      "%%matrixmarket MATRIX Coordinate REAL General  \r\n1 7 7\r\n1 1 1.5D+1\r\n1 2 +2\r\n"
      "1 3 -.25\r\n1 4 1e-60\r\n1 5 1d-400\r\n 1\t6  7 \r\n1 7 3.4028235e38");
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(15, 2, -0.25, 0, 0, 7, 3.4028235e38f));
}

TEST_F(MatrixMarket, SymmetricIsExpandedAndTheDiagonalKeptOnce) {
  const Dataset dataset =
      read("%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 4\n3 1 -2\n2 3 5\n");
  EXPECT_EQ(dataset.edges_stored, 3);
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(0, 2, 2, 0, 1));
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(4, -2, 5, -2, 5));
}

TEST_F(MatrixMarket, SkewSymmetricIsNegated) {
  const Dataset dataset =
      read("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 3\n2 2 0\n");
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(1, 0, 1));
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(-3, 3, 0));
  EXPECT_THAT(error_of("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n"),
              HasSubstr("line 3"));
}

TEST_F(MatrixMarket, DuplicatesFollowTheOption) {
  const std::string text = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n1 2\n";
  EXPECT_THAT(error_of(text), HasSubstr("more than once"));
  EXPECT_THAT(read(text, Duplicates::sum).graph.values().span(), ElementsAre(2));
  EXPECT_THAT(read(text, Duplicates::first).graph.values().span(), IsEmpty());
}

TEST_F(MatrixMarket, GzipMayHaveSeveralMembers) {
  const std::string head = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n";
  const std::string whole = gzipped(head + "1 2\n") + gzipped("2 2\n");
  EXPECT_THAT(read(whole).graph.col_indices().span(), ElementsAre(1, 1));
  EXPECT_EQ(read(whole + std::string(17, '\0')).edges_stored, 2);
  EXPECT_THAT(error_of(whole + "something else"), HasSubstr("unpacked"));
}

TEST_F(MatrixMarket, ManyLinesKeepTheirNumbers) {
  // Long enough for several chunks, with blank lines and comments in between.
  constexpr int count = 300000;
  std::string text =
      fmt::format("%%MatrixMarket matrix coordinate pattern general\n{0} {0} {0}\n", count);
  text.reserve(8 << 20);
  for (int i = 1; i <= count; ++i) {
    text += fmt::format("{} {}\n", i, count + 1 - i);
    if (i % 1000 == 0) text += "\n% comment\n";
  }
  const Dataset dataset = read(text);
  ASSERT_EQ(dataset.graph.num_edges(), count);
  for (VertexId i = 0; i < count; ++i) ASSERT_EQ(dataset.graph.neighbours(i)[0], count - 1 - i);
  const std::string broken = text + "1 1\n";
  EXPECT_THAT(error_of(broken), HasSubstr("holds 300001 entries"));
  text.replace(text.rfind("300000 1\n"), 9, "300000 q\n");
  EXPECT_THAT(error_of(text), HasSubstr("line 300600:"));
}

TEST_F(MatrixMarket, ErrorsNameTheLine) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_THAT(error_of("hello\n1 1 1\n"), HasSubstr("begins with %%MatrixMarket"));
  EXPECT_THAT(error_of(head), HasSubstr("size of the matrix is missing"));
  EXPECT_THAT(error_of(head + "2 2\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of(head + "2 2 1 1\n1 1 1\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of(head + "-1 2 1\n1 1 1\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of(head + "2 2 1\n"), HasSubstr("holds 0 entries"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1 1\n1 2 1\n"), HasSubstr("holds 2 entries"));
  EXPECT_THAT(error_of(head + "2 2 1\n\n0 1 1\n"), HasSubstr("line 4: index 0 is not within"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 3 1\n"), HasSubstr("index 3"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 99999999999999999999 1\n"), HasSubstr("line 3"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1\n"), HasSubstr("no value"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1 1e39\n"), HasSubstr("32-bit float"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1 1x\n"), HasSubstr("no value"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1 inf\n"),
              HasSubstr("line 3: has a value that is not finite"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1 nan\n"),
              HasSubstr("line 3: has a value that is not finite"));
  EXPECT_THAT(error_of(head + "2 2 1\n1 1 1 1\n"), HasSubstr("goes on"));
  EXPECT_THAT(error_of(head + "2 2 1000000000000\n1 1 1\n"), HasSubstr("holds 1 entries"));
  EXPECT_THAT(error_of(head + "2147483647 2 0\n"), HasSubstr("may claim"));
  EXPECT_THAT(error_of("%%MatrixMarket matrix array real general\n1 1\n1\n"),
              HasSubstr("'coordinate'"));
  EXPECT_THAT(error_of("%%MatrixMarket matrix coordinate complex general\n1 1 0\n"),
              HasSubstr("complex"));
  EXPECT_THAT(error_of("%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n"),
              HasSubstr("hermitian"));
  EXPECT_THAT(error_of("%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n"),
              HasSubstr("no signs"));
  EXPECT_THAT(error_of("%%MatrixMarket matrix coordinate real symmetric\n1 2 0\n"),
              HasSubstr("symmetric"));
}

TEST_F(MatrixMarket, RoundTripsShapesAndFloats) {
  for (const Dataset& dataset : test::small_datasets()) {
    SCOPED_TRACE(dataset.name);
    // The format knows neither scales nor edge ids.
    const Graph graph = dataset.graph.with_scales({}, {}).with_edge_ids({});
    for (const char* name : {"b.mtx", "b.mtx.gz"}) {
      io::write_matrix_market(graph, folder_ / name);
      EXPECT_EQ(io::read_matrix_market(folder_ / name).graph, graph) << name;
    }
  }
  const float extreme[] = {std::numeric_limits<float>::min(), std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::denorm_min(), 0.1f, -0.0f};
  const std::vector<VertexId> rows(5, 0), cols{0, 1, 2, 3, 4};
  const Graph graph = from_coo(1, 5, rows, cols, extreme);
  io::write_matrix_market(graph, folder_ / "c.mtx");
  EXPECT_EQ(io::read_matrix_market(folder_ / "c.mtx").graph, graph);
}

TEST_F(MatrixMarket, WritesScalesMultipliedIn) {
  const std::vector<VertexId> rows{0, 1}, cols{1, 0};
  const Graph graph =
      from_coo(2, 2, rows, cols).with_scales(std::vector{2.0f, 3.0f}, std::vector{5.0f, 7.0f});
  io::write_matrix_market(graph, folder_ / "d.mtx");
  EXPECT_THAT(io::read_matrix_market(folder_ / "d.mtx").graph.values().span(), ElementsAre(14, 15));
}

}  // namespace
}  // namespace tessera
