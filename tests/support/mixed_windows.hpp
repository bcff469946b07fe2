// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "tessera/graph/build.hpp"

namespace tessera::testing {

/// Windows of 64 rows that want different cores: in every other one the rows share 48 sources, in
/// the rest each has 24 of its own, but for an empty row and one with a quarter of all sources.
inline Graph mixed_windows(VertexId rows, VertexId cols, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<VertexId> targets, sources;
  std::vector<VertexId> shared;
  for (VertexId row = 0; row < rows; ++row) {
    const VertexId window = row / 64, place = row % 64;
    if (place == 0) {
      shared.resize(48);
      for (VertexId& source : shared) {
        source = static_cast<VertexId>(random() % static_cast<unsigned>(cols));
      }
    }
    std::vector<VertexId> own;
    if (window % 2 == 0) {
      for (const VertexId source : shared) {
        if (random() % 4 != 0) own.push_back(source);
      }
    } else if (place != 7) {
      const VertexId degree = place == 9 && window % 4 == 1 ? cols / 4 : 24;
      for (VertexId i = 0; i < degree; ++i) {
        own.push_back(static_cast<VertexId>(random() % static_cast<unsigned>(cols)));
      }
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const VertexId source : own) {
      targets.push_back(row);
      sources.push_back(source);
    }
  }
  return from_coo(rows, cols, targets, sources);
}

}  // namespace tessera::testing
