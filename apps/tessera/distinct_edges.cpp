// SPDX-License-Identifier: Apache-2.0
#include "distinct_edges.hpp"

#include "tessera/core/error.hpp"

namespace tessera::app {

void require_distinct_edges(const Dataset& dataset) {
  if (!dataset.graph.has_repeated_edges()) return;
  throw Error(ErrorCode::unsupported, "a pattern of edges of which some are listed twice",
              dataset.name, "read the data with --duplicates first");
}

}  // namespace tessera::app
