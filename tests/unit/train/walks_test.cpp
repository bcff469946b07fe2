// SPDX-License-Identifier: Apache-2.0
#include "train/walks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/train/fit.hpp"

namespace tessera::train {
namespace {

/// Vertex v has one source, v + 1; the last has none.
Graph path(VertexId vertices) {
  std::vector<VertexId> rows, cols;
  for (VertexId v = 0; v + 1 < vertices; ++v) {
    rows.push_back(v);
    cols.push_back(v + 1);
  }
  return from_coo(vertices, vertices, rows, cols);
}

TEST(Walks, go_from_vertices_to_their_sources) {
  const std::vector<VertexId> roots{7, 2, 9};
  EXPECT_EQ(walked(path(10), roots, 3, random_of_walks(1, 0)),
            (std::vector<VertexId>{2, 3, 4, 5, 7, 8, 9}));
  EXPECT_EQ(walked(path(10), {}, 3, random_of_walks(1, 0)), std::vector<VertexId>());
}

TEST(Walks, differ_by_seed_and_step) {
  const Graph graph = test::learnable_vertices(300).graph;
  const std::vector<VertexId> roots{1, 20, 77, 150, 299};
  const auto met = [&](std::uint64_t seed, std::uint64_t step) {
    return walked(graph, roots, 4, random_of_walks(seed, step));
  };
  EXPECT_EQ(met(1, 0), met(1, 0));
  EXPECT_NE(met(1, 0), met(1, 1));
  EXPECT_NE(met(1, 0), met(2, 0));
  const std::vector<VertexId> found = met(3, 5);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  EXPECT_EQ(std::adjacent_find(found.begin(), found.end()), found.end());
  EXPECT_LE(found.size(), 25u);
}

TEST(Walks, make_batches_that_teach_what_the_full_batch_does) {
  TrainOptions options = test::short_training(40);
  options.batching = Batching::walks;
  options.batch_size = 12;
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::sage, nn::ModelKind::cheb}) {
    struct Reset {
      ~Reset() { set_num_threads(0); }
    } reset;
    set_num_threads(1);
    const TrainReport one = fit(test::learnable_vertices(), test::small_model(kind), options);
    EXPECT_GT(one.test.mean, 0.72) << nn::to_string(kind);
    set_num_threads(3);
    const TrainReport three = fit(test::learnable_vertices(), test::small_model(kind), options);
    EXPECT_EQ(one.runs[0].curve.back().loss, three.runs[0].curve.back().loss);
  }
  testing::expect_error(ErrorCode::invalid_argument, {"walks", "graphs"}, [&] {
    fit(test::learnable_graphs(), test::small_model(nn::ModelKind::gin, true), options);
  });
  options.walk_length = 0;
  testing::expect_error(ErrorCode::invalid_argument, {"walk_length is 0"}, [&] {
    fit(test::learnable_vertices(), test::small_model(nn::ModelKind::gcn), options);
  });
}

}  // namespace
}  // namespace tessera::train
