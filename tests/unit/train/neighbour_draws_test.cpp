// SPDX-License-Identifier: Apache-2.0
#include "train/neighbour_draws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "support/generated.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/normalise.hpp"

namespace tessera::train {
namespace {

/// Rows of 0 to 11 edges, some with a self loop; of the last vertex there are no edges.
Graph uneven(bool weighted) {
  constexpr VertexId vertices = 24;
  const Random random(7, 1);
  std::vector<VertexId> rows, cols;
  std::vector<float> values;
  std::uint64_t element = 0;
  for (VertexId row = 0; row + 1 < vertices; ++row) {
    for (VertexId k = 0; k < row % 12; ++k) {
      rows.push_back(row);
      cols.push_back((row + k * 2) % vertices);
      values.push_back(static_cast<float>(0.5 + random.uniform(element++)));
    }
  }
  return from_coo(vertices, vertices, rows, cols, weighted ? values : std::vector<float>{});
}

sample::NeighbourOptions with(std::vector<std::int64_t> fan_outs, bool replace = false) {
  sample::NeighbourOptions options;
  options.fan_outs = std::move(fan_outs);
  options.replace = replace;
  options.seed = 5;
  return options;
}

std::vector<VertexId> all_of(const Graph& graph) {
  std::vector<VertexId> all(static_cast<std::size_t>(graph.num_rows()));
  std::iota(all.begin(), all.end(), VertexId{0});
  return all;
}

/// What layers of this kind multiply with on the whole graph.
Graph whole_of(const Graph& graph, DrawnEdges edges) {
  return edges == DrawnEdges::normalised ? gcn_normalised(graph) : graph.with_values({});
}

/// The rows of a matrix, which the vertices say the columns of, dense.
Matrix<double> dense(const Graph& graph, const std::vector<VertexId>& vertices, VertexId columns) {
  Matrix<double> result(graph.num_rows(), columns, 0.0);
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      const VertexId column = vertices[static_cast<std::size_t>(graph.col_indices()[k])];
      result(row, column) += static_cast<double>(graph.weight(row, k));
    }
  }
  return result;
}

TEST(NeighbourDraws, of_all_neighbours_are_the_rows_of_the_whole) {
  for (const bool weighted : {false, true}) {
    const Graph graph = uneven(weighted);
    for (const DrawnEdges edges : {DrawnEdges::counted, DrawnEdges::normalised}) {
      const NeighbourDraws draws(graph, with({-1, -1}), edges);
      const std::vector<VertexId> seeds{23, 11, 4, 0, 17};
      const NeighbourDraws::Layers drawn = draws.draw(seeds, 3);
      const Matrix<double> whole = dense(whole_of(graph, edges), all_of(graph), graph.num_cols());
      ASSERT_EQ(drawn.graphs.size(), 2u);
      EXPECT_EQ(drawn.graphs[1].num_rows(), 5);
      EXPECT_EQ(drawn.graphs[0].num_rows(), drawn.graphs[1].num_cols());
      EXPECT_EQ(drawn.graphs[0].num_cols(), std::ssize(drawn.vertices));
      for (const Graph& layer : drawn.graphs) {
        layer.validate();
        const Matrix<double> found = dense(layer, drawn.vertices, graph.num_cols());
        for (VertexId row = 0; row < layer.num_rows(); ++row) {
          for (VertexId column = 0; column < graph.num_cols(); ++column) {
            const VertexId vertex = drawn.vertices[static_cast<std::size_t>(row)];
            EXPECT_NEAR(found(row, column), whole(vertex, column), 1e-6);
          }
        }
      }
    }
  }
}

TEST(NeighbourDraws, sums_are_those_over_all_neighbours_on_average) {
  constexpr int steps = 3000;
  for (const bool weighted : {false, true}) {
    for (const bool replace : {false, true}) {
      for (const DrawnEdges edges : {DrawnEdges::counted, DrawnEdges::normalised}) {
        SCOPED_TRACE(::testing::Message() << weighted << replace << static_cast<int>(edges));
        const Graph graph = uneven(weighted);
        const std::vector<VertexId> seeds = all_of(graph);
        const NeighbourDraws draws(graph, with({3}, replace), edges);
        Matrix<double> sums(graph.num_rows(), graph.num_cols(), 0.0);
        for (int step = 0; step < steps; ++step) {
          const NeighbourDraws::Layers drawn = draws.draw(seeds, static_cast<std::uint64_t>(step));
          const Matrix<double> found = dense(drawn.graphs[0], drawn.vertices, graph.num_cols());
          for (std::int64_t i = 0; i < sums.size(); ++i) sums.data()[i] += found.data()[i];
        }
        const Matrix<double> whole = dense(whole_of(graph, edges), seeds, graph.num_cols());
        for (std::int64_t i = 0; i < sums.size(); ++i) {
          // An entry a is a times at most 4 / sqrt(3), or 0: so far the mean of so many may be off.
          const double most = 6 * 2.4 * whole.data()[i] / std::sqrt(steps);
          EXPECT_NEAR(sums.data()[i] / steps, whole.data()[i], most + 1e-6);
        }
      }
    }
  }
}

TEST(NeighbourDraws, have_loops_alone_where_nothing_is_drawn) {
  const Graph graph = uneven(false);
  const std::vector<VertexId> seeds{3, 23};
  const Graph looped = gcn_normalised(graph);
  const NeighbourDraws::Layers drawn =
      NeighbourDraws(graph, with({0, 0}), DrawnEdges::normalised).draw(seeds, 0);
  EXPECT_EQ(drawn.vertices, seeds);
  for (const Graph& layer : drawn.graphs) {
    ASSERT_EQ(layer.num_edges(), 2);
    for (VertexId row = 0; row < 2; ++row) {
      const float scale = looped.row_scale()[seeds[static_cast<std::size_t>(row)]];
      EXPECT_FLOAT_EQ(layer.weight(row, row), scale * scale);
    }
  }
  EXPECT_EQ(
      NeighbourDraws(graph, with({0}), DrawnEdges::counted).draw(seeds, 0).graphs[0].num_edges(),
      0);
}

TEST(NeighbourDraws, leave_values_to_layers_of_ones_own) {
  const Graph graph = uneven(true);
  EXPECT_TRUE(NeighbourDraws(graph, with({2}), DrawnEdges::plain)
                  .draw(all_of(graph), 0)
                  .graphs[0]
                  .has_values());
}

}  // namespace
}  // namespace tessera::train
