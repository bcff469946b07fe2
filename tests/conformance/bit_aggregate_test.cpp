// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "support/bit_kernels.hpp"
#include "support/odd_graphs.hpp"

namespace tessera::ops {
namespace {

TEST_P(BitAggregateKernels, AreExactOnOddGraphs) {
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  graphs.push_back({"hub", testing::hub_graph(300, 5000, 3)});
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    for (const int bits : {1, 2, 4, 7, 8, 9, 16}) expect_exact(named.graph, 17, bits);
    for (const std::int64_t cols : {0, 1, 15, 16, 31, 32, 33, 64, 127, 128, 129, 257, 300}) {
      expect_exact(named.graph, cols, 8);
    }
  }
}

TEST_P(BitAggregateKernels, AreExactForAllBits) {
  const Graph graph = testing::random_graph(200, 150, 3000, 6, false);
  for (int bits = 1; bits <= quant::max_bits; ++bits) expect_exact(graph, 40, bits);
}

INSTANTIATE_TEST_SUITE_P(All, BitAggregateKernels,
                         ::testing::ValuesIn(testing::kernel_names("bit_aggregate")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
