// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/random_coo.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::testing {

/// So many rows and columns that a GPU's warps take as many of them one after another as they may,
/// 16 each on up to 136 processors: of no edge, of a few, and at some distance from each other of
/// several hundred.
inline Graph many_rows_of_different_lengths(std::uint64_t seed) {
  constexpr VertexId size = 140'000, distance = 2'000, many = 300;
  Coo coo = random_coo(size, size, 3 * size, seed);
  for (VertexId hub = 17; hub < size; hub += distance) {
    for (VertexId i = 0; i < many; ++i) {
      coo.rows.push_back(hub);
      coo.cols.push_back((hub + 331 * i) % size);
      coo.values.push_back(1);
      coo.rows.push_back((hub + 353 * i) % size);
      coo.cols.push_back(hub + 1);
      coo.values.push_back(1);
    }
  }
  return without_duplicates(coo).build({}, false);
}

}  // namespace tessera::testing
