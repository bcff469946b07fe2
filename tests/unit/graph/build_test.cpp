// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/build.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::expect_error;
using Vertices = std::vector<VertexId>;

TEST(FromEdges, RowIsTheTarget) {
  const Graph graph = from_edges(3, Vertices{0, 2}, Vertices{1, 1}, std::vector<float>{5, 7});
  EXPECT_EQ(graph.degree(1), 2);
  EXPECT_EQ(graph.neighbours(1)[0], 0);
  EXPECT_EQ(graph.neighbours(1)[1], 2);
  EXPECT_EQ(graph.weight(1, 1), 7);
}

TEST(FromCoo, RowIsTheRow) {
  const Graph graph = from_coo(2, 4, Vertices{1, 0}, Vertices{3, 2});
  EXPECT_EQ(graph.neighbours(0)[0], 2);
  EXPECT_EQ(graph.neighbours(1)[0], 3);
  EXPECT_FALSE(graph.has_values());
}

TEST(FromCoo, GraphsWithoutVerticesOrEdges) {
  EXPECT_EQ(from_coo(0, 0, {}, {}), Graph());
  const Graph graph = from_coo(17, 3, {}, {});
  graph.validate();
  EXPECT_EQ(graph.num_rows(), 17);
  EXPECT_EQ(graph.num_edges(), 0);
}

TEST(FromCoo, IndicesOutOfRangeAreNamedWithTheirPosition) {
  expect_error(ErrorCode::bad_data, {"position 1", "column index 4", "[0, 4)"}, [] {
    from_coo(3, 4, Vertices{0, 1, 9}, Vertices{0, 4, 0});
  });
  expect_error(ErrorCode::bad_data, {"position 0", "row index -1", "[0, 3)"},
               [] { from_coo(3, 4, Vertices{-1}, Vertices{0}); });
  expect_error(ErrorCode::bad_data, {"position 0", "target index 0", "[0, 0)"},
               [] { from_edges(0, Vertices{0}, Vertices{0}); });
  expect_error(ErrorCode::bad_data, {"position 2", "target index 5", "[0, 5)"}, [] {
    from_edges(5, Vertices{0, 1, 2}, Vertices{0, 1, 5});
  });
}

TEST(FromCoo, ValuesAreFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{1, -infinity, 2};
  expect_error(ErrorCode::bad_data, {"values[1] is -inf", "--nonfinite allow"}, [&] {
    from_coo(3, 3, Vertices{0, 1, 2}, Vertices{0, 1, 2}, values);
  });
  BuildOptions summed;
  summed.duplicates = Duplicates::sum;
  expect_error(ErrorCode::bad_data, {"values[0] is inf"}, [&] {
    from_coo(1, 1, Vertices{0, 0}, Vertices{0, 0}, std::vector<float>{3e38f, 3e38f}, summed);
  });
}

TEST(FromCoo, ValuesThatAreNotFiniteAreKeptWhereTheyAreAllowed) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{1, -infinity, std::numeric_limits<float>::quiet_NaN()};
  BuildOptions options;
  options.nonfinite = Nonfinite::allow;
  const Graph graph = from_coo(3, 3, Vertices{2, 1, 0}, Vertices{0, 1, 2}, values, options);
  EXPECT_TRUE(std::isnan(graph.values()[0]));
  EXPECT_EQ(graph.values()[1], -infinity);
  EXPECT_EQ(graph.values()[2], 1);
  options.duplicates = Duplicates::sum;
  const std::vector<float> large{3e38f, 3e38f};
  EXPECT_EQ(from_coo(1, 1, Vertices{0, 0}, Vertices{0, 0}, large, options).values()[0], infinity);
}

TEST(FromCoo, SizesMustMatch) {
  expect_error(ErrorCode::invalid_argument, {"1 row indices but 2 column"}, [] {
    from_coo(3, 3, Vertices{0}, Vertices{0, 1});
  });
  expect_error(ErrorCode::invalid_argument, {"1 values for 2 edges"}, [] {
    from_coo(3, 3, Vertices{0, 1}, Vertices{0, 1}, std::vector<float>{1});
  });
  expect_error(ErrorCode::invalid_argument, {"negative number of vertices"},
               [] { from_coo(-1, 3, {}, {}); });
  expect_error(ErrorCode::invalid_argument, {"negative number of vertices"},
               [] { from_edges(-1, {}, {}); });
}

TEST(FromCoo, DuplicatesAreRejectedByName) {
  expect_error(ErrorCode::bad_data, {"row 1", "column 2", "more than once", "sum"}, [] {
    from_coo(3, 3, Vertices{2, 1, 0, 1}, Vertices{0, 2, 1, 2});
  });
  expect_error(ErrorCode::bad_data, {"target 2", "source 1"}, [] {
    from_edges(3, Vertices{1, 1}, Vertices{2, 2});
  });
}

TEST(FromCoo, SummingAnUnweightedGraphCountsOnlyWhereEdgesRepeat) {
  const BuildOptions sum{.duplicates = Duplicates::sum};
  EXPECT_FALSE(from_coo(3, 3, Vertices{1, 0}, Vertices{0, 1}, {}, sum).has_values());
  const Graph graph = from_coo(3, 3, Vertices{1, 0, 1}, Vertices{0, 1, 0}, {}, sum);
  EXPECT_EQ(graph.weight(0, 0), 1);
  EXPECT_EQ(graph.weight(1, 1), 2);
}

TEST(FromCoo, SumsInDouble) {
  // In float the ones would vanish beside 2^24.
  std::vector<float> values{16777216};
  values.resize(9, 1);
  const Vertices zeros(values.size(), 0);
  const Graph graph = from_coo(1, 1, zeros, zeros, values, {.duplicates = Duplicates::sum});
  EXPECT_EQ(graph.values()[0], 16777224);
}

TEST(FromCoo, FirstKeepsTheEarliestAndDropsTheIdsOfOthers) {
  const Graph graph =
      from_coo(2, 2, Vertices{1, 0, 1}, Vertices{1, 0, 1}, std::vector<float>{3, 4, 5},
               {.duplicates = Duplicates::first, .keep_edge_ids = true});
  EXPECT_EQ(graph.values(), SharedArray<float>(std::vector<float>{4, 3}));
  EXPECT_EQ(graph.edge_ids(), SharedArray<EdgeOffset>(std::vector<EdgeOffset>{1, 0, -1}));
}

TEST(FromCoo, AStarWithAHundredThousandLeaves) {
  constexpr VertexId leaves = 100000;
  const Graph star = testing::star_graph(leaves);
  star.validate();
  EXPECT_EQ(star.num_edges(), 2 * leaves);
  EXPECT_EQ(star.degree(0), leaves);
  EXPECT_EQ(star.degree(leaves), 1);
  EXPECT_EQ(star.csc().row_indices, star.col_indices());
}

TEST(FromCoo, TellsItsProgress) {
  std::set<std::string> stages;
  BuildOptions options{.duplicates = Duplicates::first, .keep_edge_ids = true};
  options.progress = [&](std::string_view stage, std::int64_t done, std::int64_t total) {
    stages.emplace(stage);
    EXPECT_LE(done, total);
  };
  testing::random_coo(50, 50, 500, 1).build(options);
  EXPECT_EQ(stages, (std::set<std::string>{"checking edges", "sorting edges", "placing edges"}));
}

}  // namespace
}  // namespace tessera
