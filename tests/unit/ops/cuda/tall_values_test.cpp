// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/values.hpp"

#include <gtest/gtest.h>

#include "cuda/array.hpp"
#include "support/odd_graphs.hpp"
#include "tiles/tile_values.hpp"

namespace tessera::ops {
namespace {

TEST(TallValues, ArePackedAsTheCpuDoes) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device gpu{DeviceKind::cuda, 0};
  const Graph graph = testing::hub_graph(300, 900, 51);
  const SharedArray<float> values =
      testing::random_values(graph.num_edges(), testing::NumberKind::normal, 52);
  const Buffer<float> on_gpu = cuda::to_device(values.span(), gpu);
  for (const tiles::Side side : {tiles::Side::forward, tiles::Side::transposed}) {
    const tiles::ValueLayout layout =
        tiles::place_values(graph, tiles::translate(graph, 64, side), side);
    const Buffer<std::int32_t> edges = cuda::to_device(layout.edges.span(), gpu);
    Buffer<std::uint32_t> entries(edges.size(), default_memory(gpu));
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      pack_values(edges.span(), {on_gpu.data()}, precision, entries.data(), {});
      synchronise(gpu);
      const SharedArray<std::uint32_t> packed = cuda::to_host(entries, gpu);
      EXPECT_EQ(packed, tiles::pack_values(layout, values.span(), precision))
          << to_string(precision);
    }
  }
}

}  // namespace
}  // namespace tessera::ops
