// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::Coo;
using testing::random_coo;
using testing::ThreadScope;

using Shape = std::pair<VertexId, VertexId>;

/// What the merged entry of a place must be.
struct Expected {
  double sum = 0;
  float first = 0;
  int times = 0;
  std::size_t first_position = 0;
};

using Oracle = std::map<std::pair<VertexId, VertexId>, Expected>;

Oracle oracle_of(const Coo& coo) {
  Oracle oracle;
  for (std::size_t k = 0; k < coo.rows.size(); ++k) {
    Expected& entry = oracle[{coo.rows[k], coo.cols[k]}];
    if (entry.times++ == 0) {
      entry.first = coo.values[k];
      entry.first_position = k;
    }
    entry.sum += coo.values[k];
  }
  return oracle;
}

void expect_matches(const Graph& graph, const Coo& coo, const Oracle& oracle, Duplicates duplicates,
                    bool with_values, bool with_ids) {
  graph.validate();
  const bool repeats = oracle.size() < coo.rows.size();
  const bool summed = duplicates == Duplicates::sum;
  ASSERT_EQ(graph.num_edges(), static_cast<EdgeOffset>(oracle.size()));
  ASSERT_EQ(graph.has_values(), !oracle.empty() && (with_values || (repeats && summed)));
  ASSERT_EQ(graph.has_edge_ids(), with_ids && !coo.rows.empty());
  EdgeOffset position = 0;
  std::map<std::pair<VertexId, VertexId>, EdgeOffset> positions;
  for (const auto& [place, expected] : oracle) {
    ASSERT_GE(position, graph.row_offsets()[place.first]);
    ASSERT_LT(position, graph.row_offsets()[place.first + 1]);
    ASSERT_EQ(graph.col_indices()[position], place.second);
    float value = 1;
    if (with_values) value = summed ? static_cast<float>(expected.sum) : expected.first;
    if (!with_values && summed) value = static_cast<float>(expected.times);
    ASSERT_EQ(graph.weight(place.first, position), value);
    positions[place] = position++;
  }
  if (!graph.has_edge_ids()) return;
  ASSERT_EQ(graph.edge_ids().size(), static_cast<EdgeOffset>(coo.rows.size()));
  for (std::size_t k = 0; k < coo.rows.size(); ++k) {
    const std::pair place{coo.rows[k], coo.cols[k]};
    const bool dropped = !summed && oracle.at(place).first_position != k;
    ASSERT_EQ(graph.edge_ids()[static_cast<EdgeOffset>(k)], dropped ? -1 : positions.at(place));
  }
}

void check_case(const Coo& coo, Duplicates duplicates, bool with_values, bool with_ids) {
  const BuildOptions options{.duplicates = duplicates, .keep_edge_ids = with_ids};
  const Graph graph = coo.build(options, with_values);
  expect_matches(graph, coo, oracle_of(coo), duplicates, with_values, with_ids);
  for (const int threads : {1, 2, 3, 4}) {
    const ThreadScope scope(threads);
    ASSERT_EQ(coo.build(options, with_values), graph) << threads << " threads";
  }
}

class BuildAgainstMap : public ::testing::TestWithParam<Shape> {};

TEST_P(BuildAgainstMap, HoldsForAnyNumberOfThreads) {
  const auto [rows, cols] = GetParam();
  for (const int trial : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const auto seed = static_cast<std::uint64_t>(trial);
    const int per_row = std::vector{0, 1, 3, 40}[seed % 4];
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << per_row << " per row");
    const Coo coo = random_coo(rows, cols, per_row * rows, seed);
    for (const bool with_values : {false, true}) {
      for (const bool with_ids : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "values " << with_values << ", ids " << with_ids);
        check_case(testing::without_duplicates(coo), Duplicates::reject, with_values, with_ids);
        check_case(coo, Duplicates::sum, with_values, with_ids);
        check_case(coo, Duplicates::first, with_values, with_ids);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BuildAgainstMap,
                         ::testing::Values(Shape{0, 0}, Shape{0, 5}, Shape{5, 0}, Shape{1, 1},
                                           Shape{15, 15}, Shape{16, 16}, Shape{17, 17},
                                           Shape{31, 31}, Shape{33, 33}, Shape{7, 33},
                                           Shape{33, 2}));

// Large enough for many buckets and chunks.
TEST(BuildProperty, LargeInputsMatchASortForAnyNumberOfThreads) {
  constexpr VertexId vertices = 200000;
  const Coo coo = random_coo(vertices, vertices, 400000, 5);
  std::vector<std::pair<VertexId, VertexId>> expected;
  for (std::size_t k = 0; k < coo.rows.size(); ++k) expected.emplace_back(coo.rows[k], coo.cols[k]);
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());

  const BuildOptions options{.duplicates = Duplicates::sum, .keep_edge_ids = true};
  const Graph graph = coo.build(options);
  graph.validate();
  ASSERT_EQ(graph.num_edges(), static_cast<EdgeOffset>(expected.size()));
  for (const auto& [row, col] : expected) {
    const auto columns = graph.neighbours(row);
    ASSERT_TRUE(std::binary_search(columns.begin(), columns.end(), col)) << row << ", " << col;
  }
  for (std::size_t k = 0; k < coo.rows.size(); ++k) {
    const EdgeOffset position = graph.edge_ids()[static_cast<EdgeOffset>(k)];
    ASSERT_EQ(graph.col_indices()[position], coo.cols[k]);
    ASSERT_GE(position, graph.row_offsets()[coo.rows[k]]);
    ASSERT_LT(position, graph.row_offsets()[coo.rows[k] + 1]);
  }
  for (const int threads : {1, 3}) {
    const ThreadScope scope(threads);
    EXPECT_EQ(coo.build(options), graph) << threads << " threads";
  }
}

TEST(BuildProperty, SortedInputTakesTheSameShapeAsShuffledInput) {
  for (const VertexId vertices : {1, 16, 17, 1000}) {
    SCOPED_TRACE(vertices);
    const Graph shuffled = testing::random_graph(vertices, vertices + 3, 20 * vertices, 9);
    std::vector<VertexId> rows;
    for (VertexId row = 0; row < vertices; ++row) {
      rows.insert(rows.end(), static_cast<std::size_t>(shuffled.degree(row)), row);
    }
    const Graph sorted = from_coo(vertices, vertices + 3, rows, shuffled.col_indices(),
                                  shuffled.values(), {.keep_edge_ids = true});
    EXPECT_EQ(sorted.with_edge_ids({}), shuffled);
    for (EdgeOffset k = 0; k < sorted.num_edges(); ++k) ASSERT_EQ(sorted.edge_ids()[k], k);
  }
}

}  // namespace
}  // namespace tessera
