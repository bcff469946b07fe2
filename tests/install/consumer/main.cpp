// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <vector>

#include <tessera/tessera.hpp>

int main() {
  const std::vector<tessera::VertexId> sources = {0, 1, 2};
  const std::vector<tessera::VertexId> targets = {1, 2, 0};
  const tessera::Graph graph = tessera::from_edges(3, sources, targets);
  graph.validate();
  std::cout << "tessera " << tessera::version() << ": " << graph << '\n';
  return graph.num_edges() == 3 ? 0 : 1;
}
