// SPDX-License-Identifier: Apache-2.0
// Opens a data set, normalises its graph as GCN does, renumbers the vertices and says what changed.
#include <iostream>

#include "tessera/graph/normalise.hpp"
#include "tessera/graph/stats.hpp"
#include "tessera/io/open.hpp"
#include "tessera/reorder/orders.hpp"

int main() {
  const tessera::Dataset data = tessera::io::open("embedded:citation");
  const tessera::Graph graph = tessera::gcn_normalised(data.graph);
  const tessera::Permutation order = tessera::reorder::rcm(graph);
  const tessera::Graph reordered = tessera::permuted(graph, order);
  std::cout << data << '\n' << tessera::compute_stats(reordered) << '\n';
  return 0;
}
