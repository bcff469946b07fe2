// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// The graph and an edge from each source to the target of the same number, for all that are both,
/// where there is none yet: the self loops of a graph whose targets are the first of its sources.
/// Those that are added have this weight; other than 1 only where edges have values. The graph lies
/// in this process and has no scales.
Graph with_first_loops(const Graph& graph, float weight = 1);

}  // namespace tessera::detail
