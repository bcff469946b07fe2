// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/side_stream.hpp"
#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/transform.hpp"

/// Parts of graphs that lie on a GPU equal those made on the CPU, bit for bit.
namespace tessera {
namespace {

using Vertices = std::vector<VertexId>;

constexpr Device device{DeviceKind::cuda, 0};

class CudaSelect : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

Vertices all_vertices(VertexId count) {
  Vertices vertices(static_cast<std::size_t>(count));
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  return vertices;
}

/// Increasing, falling and in no order; all, some and none.
std::vector<Vertices> choices(VertexId count) {
  std::vector<Vertices> choices = {{}, all_vertices(count)};
  Vertices falling = all_vertices(count);
  std::reverse(falling.begin(), falling.end());
  choices.push_back(falling);
  Vertices mixed = all_vertices(count);
  const Random random(3);
  std::sort(mixed.begin(), mixed.end(), [&](VertexId a, VertexId b) {
    const auto key = [&](VertexId v) { return random.uniform(static_cast<std::uint64_t>(v)); };
    return key(a) < key(b);
  });
  mixed.resize(mixed.size() / 2);
  choices.push_back(mixed);
  std::sort(mixed.begin(), mixed.end());
  choices.push_back(mixed);
  return choices;
}

SharedArray<float> scale_of(VertexId count, float first) {
  std::vector<float> scale(static_cast<std::size_t>(count));
  std::iota(scale.begin(), scale.end(), first);
  return scale;
}

/// With and without values, scales, edge ids and repeated edges, and with a hub.
std::vector<Graph> graphs(VertexId vertices) {
  const testing::Coo repeated = testing::random_coo(vertices, vertices, 5 * vertices, 11);
  const testing::Coo coo = testing::without_duplicates(repeated);
  BuildOptions with_ids;
  with_ids.keep_edge_ids = true;
  BuildOptions keep = with_ids;
  keep.duplicates = Duplicates::keep;
  testing::Coo hub{vertices, vertices, {}, {}, {}};
  for (VertexId v = 0; v < vertices; ++v) {
    hub.rows.insert(hub.rows.end(), {vertices / 2, v});
    hub.cols.insert(hub.cols.end(), {v, (v * 7 + 1) % vertices});
    hub.values.insert(hub.values.end(), {static_cast<float>(v), 0.5f});
  }
  BuildOptions sum;
  sum.duplicates = Duplicates::sum;
  return {coo.build({}, false), coo.build(with_ids),
          coo.build(with_ids).with_scales(scale_of(vertices, 1), scale_of(vertices, 2)),
          repeated.build(keep), hub.build(sum)};
}

TEST_F(CudaSelect, InducedSubgraphsEqualTheCpu) {
  for (const VertexId vertices : {1, 2, 31, 33, 1000}) {
    for (const Graph& here : graphs(vertices)) {
      const Graph there = in_place(here, device);
      EXPECT_EQ(there.device(), device);
      EXPECT_EQ(there, here);
      for (const Vertices& chosen : choices(vertices)) {
        SCOPED_TRACE(::testing::Message() << vertices << " vertices, " << chosen.size()
                                          << " chosen, " << here.num_edges() << " edges");
        const Graph expected = induced_subgraph(here, chosen);
        const Graph cut = induced_subgraph(there, chosen);
        EXPECT_EQ(cut.device(), device);
        EXPECT_EQ(cut.has_repeated_edges(), expected.has_repeated_edges());
        EXPECT_EQ(cut, expected);
        cut.validate();
      }
    }
  }
}

TEST_F(CudaSelect, SelectedRowsEqualTheCpu) {
  for (const VertexId rows : {1, 17, 500}) {
    const Graph here = testing::random_graph(rows, 333, 6 * rows, 5)
                           .with_scales(scale_of(rows, 1), scale_of(333, 2));
    const Graph there = in_place(here, device);
    std::vector<Vertices> lists = choices(rows);
    lists.push_back({rows - 1, 0, rows - 1, rows - 1});
    for (const Vertices& chosen : lists) {
      const Graph taken = selected_rows(there, chosen);
      EXPECT_EQ(taken.device(), device);
      EXPECT_EQ(taken, selected_rows(here, chosen));
    }
  }
}

TEST_F(CudaSelect, MakesThemOnOtherStreams) {
  const Graph here = testing::random_graph(800, 800, 9000, 6);
  const SideStream one(device), other(device);
  const Graph there = in_place(here, {device, nullptr, one});
  const Vertices chosen = choices(800)[3];
  EXPECT_EQ(induced_subgraph(there, chosen, other), induced_subgraph(here, chosen));
  EXPECT_EQ(selected_rows(there, chosen, other), selected_rows(here, chosen));
  synchronise(device, one);
  synchronise(device, other);
}

TEST_F(CudaSelect, SaysTheSameOfWhatIsWrong) {
  const Graph here = testing::path_graph(4);
  for (const Graph& graph : {here, in_place(here, device)}) {
    testing::expect_error(ErrorCode::invalid_argument, {"vertex 1 is listed twice", "position 2"},
                          [&] {
                            induced_subgraph(graph, Vertices{1, 0, 1});
                          });
    testing::expect_error(ErrorCode::invalid_argument, {"vertex 4 is outside [0, 4)"},
                          [&] { induced_subgraph(graph, Vertices{4}); });
    testing::expect_error(ErrorCode::invalid_argument, {"listed twice"}, [&] {
      induced_subgraph(graph, Vertices{0, 1, 2, 3, 3});
    });
    testing::expect_error(ErrorCode::invalid_argument, {"row -1 is outside", "position 1"}, [&] {
      selected_rows(graph, Vertices{0, -1});
    });
  }
}

TEST_F(CudaSelect, AddsSelfLoopsAsTheCpu) {
  for (const VertexId vertices : {1, 33, 1000}) {
    const testing::Coo coo =
        testing::without_duplicates(testing::random_coo(vertices, vertices, 4 * vertices, 8));
    for (const bool with_values : {false, true}) {
      BuildOptions options;
      options.keep_edge_ids = true;
      const Graph here = coo.build(options, with_values);
      const Graph looped = with_self_loops(in_place(here, device));
      EXPECT_EQ(looped.device(), device);
      EXPECT_EQ(looped, with_self_loops(here));
      looped.validate();
    }
  }
}

TEST_F(CudaSelect, ComesBackToThisProcess) {
  const Graph here = graphs(33)[2];
  const Graph back = in_place(in_place(here, device), Device{});
  EXPECT_EQ(back.device(), Device{});
  EXPECT_EQ(back, here);
}

}  // namespace
}  // namespace tessera
