// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/data/dataset.hpp"

namespace tessera::app {

/// Throws where a graph lists an edge several times, for what works on patterns of edges.
void require_distinct_edges(const Dataset& dataset);

}  // namespace tessera::app
