// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/graph/build.hpp"

namespace tessera::data {

/// The symmetric graph of a list of pairs, each given once.
template <class Links>
Graph graph_of_links(VertexId num_vertices, const Links& links) {
  std::vector<VertexId> rows;
  std::vector<VertexId> cols;
  for (const auto& [a, b] : links) {
    rows.insert(rows.end(), {a, b});
    cols.insert(cols.end(), {b, a});
  }
  return from_coo(num_vertices, num_vertices, rows, cols);
}

}  // namespace tessera::data
