// SPDX-License-Identifier: Apache-2.0
#include "tiles/hub_windows.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/generate.hpp"

namespace tessera::tiles {
namespace {

/// Vertices of a group know each other, and nobody else.
Graph groups(VertexId size, VertexId count) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < size * count; ++row) {
    for (VertexId i = 0; i < size; ++i) columns.push_back(row / size * size + i);
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return {size * count, size * count, std::move(offsets), std::move(columns)};
}

TEST(HubWindows, CountRowsThatShareAllTheirColumns) {
  const auto windows = sampled_hub_windows(groups(12, 9));
  ASSERT_EQ(windows->size(), static_cast<std::size_t>(sampled_hubs));
  for (const HubWindow& window : *windows) {
    EXPECT_EQ(window.edges, 12 * 12);
    EXPECT_EQ(window.columns, 12);
  }
}

TEST(HubWindows, LookAtSomeRowsOfALongHub) {
  // Vertex 0 knows everybody, who know nobody else.
  constexpr VertexId others = 1000;
  std::vector<EdgeOffset> offsets = {0, others};
  std::vector<VertexId> columns;
  for (VertexId i = 1; i <= others; ++i) columns.push_back(i);
  for (VertexId i = 1; i <= others; ++i) {
    columns.push_back(0);
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  const auto windows =
      sampled_hub_windows(Graph(others + 1, others + 1, std::move(offsets), std::move(columns)));
  for (const HubWindow& window : *windows) {
    EXPECT_EQ(window.edges, sampled_hub_columns);
    EXPECT_EQ(window.columns, 1);
  }
}

TEST(HubWindows, LeaveOutRowsThatAreTooLong) {
  const auto windows = sampled_hub_windows(groups(longest_hub_row + 1, 1));
  for (const HubWindow& window : *windows) EXPECT_EQ(window.edges, 0);
}

/// As on a GPU, which has no room to tell them apart.
TEST(HubWindows, CountColumnsOfTheSamePlaceOnce) {
  const std::vector<VertexId> members = {0, 1, hub_column_places, hub_column_places + 1};
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < hub_column_places + 2; ++row) {
    const bool is_member = std::find(members.begin(), members.end(), row) != members.end();
    if (is_member) columns.insert(columns.end(), members.begin(), members.end());
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  const auto windows = sampled_hub_windows(
      Graph(hub_column_places + 2, hub_column_places + 2, std::move(offsets), std::move(columns)));
  for (const HubWindow& window : *windows) {
    EXPECT_EQ(window.edges, 16);
    EXPECT_EQ(window.columns, 2);
  }
}

TEST(HubWindows, AreNoneWithoutEdges) {
  const Graph empty = generate::build(generate::ErdosRenyi{.vertices = 17, .edges = 0, .seed = 1});
  EXPECT_TRUE(sampled_hub_windows(empty)->empty());
}

/// Of points in random order rows with the same hub share most of their columns; at random none.
TEST(HubWindows, ShowWhichGraphsHaveGroups) {
  const auto share = [](const Graph& graph) {
    double edges = 0, columns = 0;
    for (const HubWindow& window : *sampled_hub_windows(graph)) {
      edges += window.edges;
      columns += window.columns;
    }
    return columns / edges;
  };
  EXPECT_LT(share(generate::build(generate::BlockModel{
                .vertices = 4000, .communities = 200, .mean_degree = 12, .inside = 1, .seed = 3})),
            0.5);
  EXPECT_GT(
      share(generate::build(generate::ErdosRenyi{.vertices = 20000, .edges = 200000, .seed = 3})),
      0.85);
}

}  // namespace
}  // namespace tessera::tiles
