// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/panels/cut.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"
#include "tessera/graph/generate.hpp"

/// Pieces of panels: every edge is in one of them, and none is larger than it must be.
namespace tessera::ops {
namespace {

void expect_whole(const Graph& graph, int rows, std::vector<PanelPiece> pieces) {
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    EXPECT_GE(pieces[i - 1].num_edges, pieces[i].num_edges);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const PanelPiece& a, const PanelPiece& b) { return a.first_edge < b.first_edge; });
  EdgeOffset next = 0;
  for (const PanelPiece& piece : pieces) {
    ASSERT_EQ(piece.first_edge, next);
    ASSERT_GT(piece.num_edges, 0);
    next += piece.num_edges;
    const VertexId end = std::min<VertexId>(piece.first_row + rows, graph.num_rows());
    ASSERT_EQ(piece.first_row % rows, 0);
    ASSERT_EQ(piece.num_rows, end - piece.first_row);
    ASSERT_EQ(piece.first_place, graph.row_offsets()[piece.first_row]);
    ASSERT_GE(piece.first_edge, piece.first_place);
    ASSERT_LE(next, graph.row_offsets()[end]);
  }
  EXPECT_EQ(next, graph.num_edges());
}

TEST(PanelCut, HasEveryEdgeOnce) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    for (const int rows : {1, 3, 224, 512}) {
      for (const std::int64_t most : {0, 1, 7, 1000}) {
        expect_whole(named.graph, rows, cut_panels(named.graph, rows, most));
      }
    }
  }
}

TEST(PanelCut, CutsHubsAndKeepsToTheNumberOfPieces) {
  const Graph graph = generate::build(generate::Rmat{.scale = 13, .edges = 200000, .seed = 6});
  constexpr int rows = 224;
  const std::int64_t panels = (graph.num_rows() + rows - 1) / rows;
  for (const std::int64_t most : {2 * panels, 5 * panels, 20 * panels}) {
    const std::vector<PanelPiece> pieces = cut_panels(graph, rows, most);
    EXPECT_LE(std::ssize(pieces), most);
    // As even as they can be: one edge less for the largest would take more pieces.
    const double mean = static_cast<double>(graph.num_edges()) / static_cast<double>(most);
    EXPECT_LE(pieces.front().num_edges, 2 * mean + 1);
  }
}

/// Where even one piece for each panel is more than was asked for, no panel is cut.
TEST(PanelCut, LeavesPanelsWholeWhereThereAreMany) {
  const Graph graph =
      generate::build(
          generate::Molecules{.graphs = 500, .mean_vertices = 20, .mean_degree = 2.2, .seed = 4})
          .graph;
  const std::vector<PanelPiece> pieces = cut_panels(graph, 32, 1);
  EXPECT_EQ(std::ssize(pieces), (graph.num_rows() + 31) / 32);
}

TEST(PanelCut, WantsAsManyPiecesAsBlocksRunAtOnceOrSeveralTimesAsMany) {
  const std::int64_t blocks = std::int64_t{h200_traits().processors} * panel_blocks;
  const Graph small =
      generate::build(generate::ErdosRenyi{.vertices = 50, .edges = 300, .seed = 1});
  EXPECT_EQ(wanted_pieces(small, 224, h200_traits()), blocks);
  const Graph many_rows =
      generate::build(generate::ErdosRenyi{.vertices = 100000, .edges = 150000, .seed = 1});
  const std::int64_t wanted = wanted_pieces(many_rows, 224, h200_traits());
  EXPECT_EQ(wanted % blocks, 0);
  EXPECT_GT(wanted, 100000 / 224);
}

}  // namespace
}  // namespace tessera::ops
