// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/fingerprint.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"

namespace tessera {
namespace {

TEST(Fingerprint, TellsStructuresApart) {
  const std::vector<VertexId> rows = {0, 0, 1, 2}, cols = {1, 2, 0, 2};
  const std::vector<VertexId> other_cols = {1, 2, 1, 2}, other_rows = {0, 1, 1, 2};
  const std::vector<Graph> graphs = {Graph(),
                                     from_coo(1, 1, {}, {}),
                                     from_coo(1, 2, {}, {}),
                                     from_coo(2, 1, {}, {}),
                                     from_coo(3, 3, rows, cols),
                                     from_coo(4, 3, rows, cols),
                                     from_coo(3, 4, rows, cols),
                                     from_coo(3, 3, rows, other_cols),
                                     from_coo(3, 3, other_rows, cols)};
  std::set<std::uint64_t> seen;
  for (const Graph& graph : graphs) seen.insert(fingerprint(graph));
  EXPECT_EQ(seen.size(), graphs.size());
}

TEST(Fingerprint, KnowsNothingOfValues) {
  const std::vector<VertexId> rows = {0, 1}, cols = {1, 0};
  const std::vector<float> values = {2, 3};
  EXPECT_EQ(fingerprint(from_coo(2, 2, rows, cols)),
            fingerprint(from_coo(2, 2, rows, cols, values)));
  EXPECT_EQ(fingerprint_text(Graph()).size(), 16u);
}

TEST(Fingerprint, IsTheSameForAnyNumberOfThreads) {
  const auto of = [](int threads) {
    set_num_threads(threads);
    const std::uint64_t result =
        fingerprint(generate::build(generate::ErdosRenyi{1000, 150000, true, 3}));
    set_num_threads(0);
    return result;
  };
  EXPECT_EQ(of(1), of(3));
}

}  // namespace
}  // namespace tessera
