// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/transform.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/graph/normalise.hpp"
#include "tessera/graph/stats.hpp"

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::Coo;
using testing::entries_of;
using testing::ThreadScope;

constexpr VertexId odd_sizes[] = {0, 1, 2, 15, 16, 17, 31, 33};

SharedArray<float> random_scale(VertexId size, std::uint64_t seed) {
  Buffer<float> scale(size);
  for (VertexId i = 0; i < size; ++i) {
    scale[i] = static_cast<float>(Random(seed).below(static_cast<std::uint64_t>(i), 8) + 1);
  }
  return scale;
}

/// A directed graph with values, scales and edge ids.
Graph rich_graph(VertexId rows, VertexId cols, std::uint64_t seed) {
  return testing::random_graph(rows, cols, 4 * rows, seed, true, true)
      .with_scales(random_scale(rows, seed + 1), random_scale(cols, seed + 2));
}

/// Checks that every input edge is where its id says. `place(k)` is where edge k must be now.
template <class Place>
void expect_ids_follow(const Graph& graph, std::int64_t inputs, Place&& place) {
  for (std::int64_t k = 0; k < inputs; ++k) {
    const auto [row, col] = place(k);
    const EdgeOffset position = graph.edge_ids()[k];
    ASSERT_GE(position, graph.row_offsets()[row]);
    ASSERT_LT(position, graph.row_offsets()[row + 1]);
    ASSERT_EQ(graph.col_indices()[position], col);
  }
}

TEST(TransformProperty, TransposingTwiceChangesNothing) {
  for (const VertexId rows : odd_sizes) {
    for (const VertexId cols : {rows, rows + 5}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << cols << ", seed " << rows);
      const Graph graph = rich_graph(rows, cols, static_cast<std::uint64_t>(rows));
      const Graph flipped = transposed(graph);
      flipped.validate();
      EXPECT_EQ(transposed(flipped), graph);
      const auto entries = entries_of(flipped);
      for (const auto& [place, weight] : entries_of(graph)) {
        ASSERT_EQ(entries.at({place.second, place.first}), weight);
      }
    }
  }
}

TEST(TransformProperty, CscPointsBackAtTheSameEdges) {
  for (const VertexId size : odd_sizes) {
    SCOPED_TRACE(size);
    const Graph graph = rich_graph(size, size + 3, 11);
    const Csc& csc = graph.csc();
    for (VertexId col = 0; col < graph.num_cols(); ++col) {
      for (EdgeOffset k = csc.col_offsets[col]; k < csc.col_offsets[col + 1]; ++k) {
        ASSERT_EQ(graph.col_indices()[csc.csr_positions[k]], col);
        ASSERT_GE(csc.csr_positions[k], graph.row_offsets()[csc.row_indices[k]]);
        ASSERT_LT(csc.csr_positions[k], graph.row_offsets()[csc.row_indices[k] + 1]);
        if (k > csc.col_offsets[col]) {
          ASSERT_GT(csc.row_indices[k], csc.row_indices[k - 1]);
        }
      }
    }
  }
}

TEST(TransformProperty, EdgeIdsFollowTheirEdges) {
  for (const VertexId size : odd_sizes) {
    SCOPED_TRACE(::testing::Message() << size << " vertices, seed 21");
    const Coo coo = testing::without_duplicates(testing::random_coo(size, size, 5 * size, 21));
    const Graph graph = coo.build({.keep_edge_ids = true});
    const auto inputs = static_cast<std::int64_t>(coo.rows.size());
    const auto same = [&](std::int64_t k) {
      return std::pair{coo.rows[static_cast<std::size_t>(k)],
                       coo.cols[static_cast<std::size_t>(k)]};
    };
    const auto flipped = [&](std::int64_t k) { return std::pair{same(k).second, same(k).first}; };
    expect_ids_follow(with_self_loops(graph), inputs, same);
    expect_ids_follow(symmetrised(graph), inputs, same);
    expect_ids_follow(transposed(graph), inputs, flipped);
  }
}

TEST(TransformProperty, SymmetrisedIsTheUnionWithTheTranspose) {
  for (const VertexId size : odd_sizes) {
    SCOPED_TRACE(::testing::Message() << size << " vertices, seed 31");
    const Graph graph = testing::random_graph(size, size, 3 * size, 31);
    std::map<std::pair<VertexId, VertexId>, float> expected;
    EdgeOffset loop_free = 0;
    for (const auto& [place, weight] : entries_of(graph)) {
      expected[place] = 1;
      expected[{place.second, place.first}] = 1;
    }
    for (const auto& [place, weight] : expected) loop_free += place.first != place.second ? 1 : 0;
    const Graph both = symmetrised(graph);
    both.validate();
    EXPECT_EQ(entries_of(both), expected);
    EXPECT_EQ(compute_stats(graph).edges_symmetrised_loop_free, loop_free);
    EXPECT_TRUE(compute_stats(both).symmetric_values);
  }
}

TEST(TransformProperty, ResultsDoNotDependOnThreads) {
  const Graph graph = rich_graph(5000, 5000, 3);
  const Graph plain = graph.with_scales({}, {});
  const Graph flipped = transposed(graph);
  const Graph looped = with_self_loops(plain);
  const Graph both = symmetrised(graph);
  const auto components = connected_components(graph);
  for (const int threads : {1, 2, 3, 4}) {
    SCOPED_TRACE(threads);
    const ThreadScope scope(threads);
    // A copy of the arrays with a transpose of its own.
    const Graph fresh = Graph(graph.num_rows(), graph.num_cols(), graph.row_offsets(),
                              graph.col_indices(), graph.values())
                            .with_scales(graph.row_scale(), graph.col_scale())
                            .with_edge_ids(graph.edge_ids());
    EXPECT_EQ(transposed(fresh), flipped);
    EXPECT_EQ(symmetrised(fresh), both);
    EXPECT_EQ(with_self_loops(fresh.with_scales({}, {})), looped);
    EXPECT_EQ(connected_components(fresh), components);
  }
}

// The dense matrix D^-1/2 (A + I) D^-1/2 in double, with row sums as degrees.
TEST(NormaliseProperty, GcnMatchesADenseOracleOnDirectedWeightedGraphs) {
  for (const VertexId size : odd_sizes) {
    for (const bool add_loops : {true, false}) {
      SCOPED_TRACE(::testing::Message() << size << " vertices, loops " << add_loops << ", seed 41");
      const Graph graph = testing::random_graph(size, size, 3 * size, 41);
      const auto n = static_cast<std::size_t>(size);
      std::vector<std::vector<double>> dense(n, std::vector<double>(n, 0));
      std::vector<bool> looped(n, false);
      for (const auto& [place, weight] : entries_of(graph)) {
        dense[static_cast<std::size_t>(place.first)][static_cast<std::size_t>(place.second)] =
            weight;
        if (place.first == place.second) looped[static_cast<std::size_t>(place.first)] = true;
      }
      std::vector<double> scale(n, 0);
      for (std::size_t i = 0; i < n; ++i) {
        if (add_loops && !looped[i]) dense[i][i] = 1;
        double degree = 0;
        for (std::size_t j = 0; j < n; ++j) degree += dense[i][j];
        scale[i] = degree > 0 ? 1 / std::sqrt(degree) : 0;
      }
      const Graph normalised = gcn_normalised(graph, add_loops);
      normalised.validate();
      const auto entries = entries_of(normalised);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          const auto entry = entries.find({static_cast<VertexId>(i), static_cast<VertexId>(j)});
          const double expected = scale[i] * dense[i][j] * scale[j];
          ASSERT_NEAR(entry == entries.end() ? 0 : entry->second, expected,
                      1e-6 * (1 + std::abs(expected)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
