// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/array.hpp"
#include "ops/sddmm/cuda/lists/list.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/graph/generate.hpp"

/// The lists of edges that a GPU makes for dot products, against those of this process.
namespace tessera::ops {
namespace {

constexpr Device gpu{DeviceKind::cuda, 0};

struct Listed {
  VertexId kept, gathered;
  std::int64_t place;

  friend bool operator==(const Listed&, const Listed&) = default;
};

/// Places of rows: by the hub of their hub, by their hub, those with most edges first.
std::vector<VertexId> rows_by_hubs(const Graph& graph) {
  std::vector<std::int64_t> uses(static_cast<std::size_t>(graph.num_cols()));
  for (const VertexId col : graph.col_indices()) ++uses[static_cast<std::size_t>(col)];
  const auto used_more = [&](VertexId a, VertexId b) {
    return std::tuple(-uses[static_cast<std::size_t>(a)], a) <
           std::tuple(-uses[static_cast<std::size_t>(b)], b);
  };
  std::vector<VertexId> hubs(static_cast<std::size_t>(graph.num_rows()));
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    VertexId hub = graph.is_square() ? row : -1;
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      const VertexId source = graph.col_indices()[e];
      if (hub < 0 || used_more(source, hub)) hub = source;
    }
    hubs[static_cast<std::size_t>(row)] = std::max(hub, 0);
  }
  const auto key = [&](VertexId row) {
    const VertexId hub = hubs[static_cast<std::size_t>(row)];
    const VertexId above = graph.is_square() ? hubs[static_cast<std::size_t>(hub)] : 0;
    return std::tuple(above, hub, graph.row_offsets()[row] - graph.row_offsets()[row + 1]);
  };
  std::vector<VertexId> rows(hubs.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](VertexId a, VertexId b) { return key(a) < key(b); });
  return rows;
}

std::vector<Listed> expected_list(const Graph& graph, ListOrder order) {
  std::vector<VertexId> rows(static_cast<std::size_t>(graph.num_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  if (order == ListOrder::hubs) rows = rows_by_hubs(graph);
  std::vector<Listed> list;
  for (const VertexId row : rows) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      list.push_back({row, graph.col_indices()[e], e});
    }
  }
  if (order != ListOrder::panels) return list;
  for (Listed& edge : list) std::swap(edge.kept, edge.gathered);
  std::stable_sort(list.begin(), list.end(), [](const Listed& a, const Listed& b) {
    return std::tuple(a.gathered / panel_rows, a.kept) <
           std::tuple(b.gathered / panel_rows, b.kept);
  });
  return list;
}

std::vector<Listed> made_list(const Graph& graph, ListOrder order) {
  const auto list = device_list(graph, order, Place(gpu));
  const auto kept = cuda::to_host(list->kept, Place(gpu));
  const auto gathered = cuda::to_host(list->gathered, Place(gpu));
  const auto places = cuda::to_host(list->places, Place(gpu));
  EXPECT_EQ(kept.size() % list_tile, 0);
  EXPECT_EQ(kept.size(), gathered.size());
  std::vector<Listed> made;
  for (std::int64_t k = 0; k < kept.size(); ++k) {
    const std::int64_t last = std::min(k, graph.num_edges() - 1);
    made.push_back({kept.data()[k], gathered.data()[k],
                    order == ListOrder::rows ? last : places.data()[last]});
  }
  return made;
}

TEST(GpuEdgeLists, HaveTheEdgesInTheirOrderAndTheLastOneUpToWholeTiles) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  graphs.push_back(
      {"R-MAT", generate::build(generate::Rmat{.scale = 11, .edges = 30000, .seed = 8})});
  graphs.push_back({"bipartite", generate::build(generate::Bipartite{
                                     .targets = 700, .sources = 3001, .edges = 9000})});
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    for (const ListOrder order : {ListOrder::rows, ListOrder::hubs, ListOrder::panels}) {
      std::vector<Listed> expected = expected_list(named.graph, order);
      while (!expected.empty() && expected.size() % list_tile != 0) {
        expected.push_back(expected.back());
      }
      EXPECT_EQ(made_list(named.graph, order), expected) << static_cast<int>(order);
    }
  }
}

}  // namespace
}  // namespace tessera::ops
