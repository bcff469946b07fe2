// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/window_cores.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/build.hpp"

namespace tessera::ops {
namespace {

constexpr VertexId window = 64;

/// Windows in which all rows have the same 32 columns, then windows whose rows share none.
Graph dense_then_sparse(VertexId dense, VertexId sparse) {
  const VertexId vertices = (dense + sparse) * window;
  std::vector<VertexId> sources, targets;
  for (VertexId row = 0; row < vertices; ++row) {
    const bool shares = row < dense * window;
    for (VertexId k = 0; k < 32; ++k) {
      sources.push_back(shares ? row / window * window + k : (row * 97 + k * 1009) % vertices);
      targets.push_back(row);
    }
  }
  BuildOptions first;
  first.duplicates = Duplicates::first;
  return from_edges(vertices, sources, targets, {}, first);
}

TEST(WindowCores, DenseWindowsGoToTensorCores) {
  const Graph graph = dense_then_sparse(200, 300);
  const WindowCoreReport report = window_cores(graph);
  EXPECT_EQ(report.height, window);
  EXPECT_EQ(report.gpu, "NVIDIA H200");
  ASSERT_EQ(std::ssize(report.on_tensor_cores), 500);
  EXPECT_TRUE(std::all_of(report.on_tensor_cores.begin(), report.on_tensor_cores.begin() + 200,
                          [](std::uint8_t on) { return on == 1; }));
  EXPECT_TRUE(std::all_of(report.on_tensor_cores.begin() + 200, report.on_tensor_cores.end(),
                          [](std::uint8_t on) { return on == 0; }));
  EXPECT_EQ(report.tensor.windows, 200);
  EXPECT_EQ(report.cuda.windows, 300);
  EXPECT_EQ(report.tensor.edges, 200 * window * 32);
  EXPECT_EQ(report.tensor.edges + report.cuda.edges, graph.num_edges());
  EXPECT_GT(report.tensor.intensity(), 10 * report.cuda.intensity());
  EXPECT_GT(report.tensor.predicted_us, 0);
}

TEST(WindowCores, GraphsWithoutEdgesOrVertices) {
  const WindowCoreReport none = window_cores(from_edges(0, {}, {}));
  EXPECT_EQ(none.tensor.windows + none.cuda.windows, 0);
  EXPECT_EQ(none.tensor.intensity(), 0);
  const WindowCoreReport empty = window_cores(from_edges(65, {}, {}));
  EXPECT_EQ(empty.tensor.windows + empty.cuda.windows, 2);
  EXPECT_EQ(empty.tensor.edges + empty.cuda.edges, 0);
}

}  // namespace
}  // namespace tessera::ops
