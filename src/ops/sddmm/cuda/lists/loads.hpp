// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/sddmm/cuda/lists/policy.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops {

/// How many rows caches hold.
struct CachedRows {
  double near = 0;    ///< the first-level cache of a processor
  double second = 0;  ///< the second-level cache
  double processors = 0;
};

/// Rows of both ends that the caches do not have, for each edge of a list.
struct ListLoads {
  double second = 0;  ///< come from the second-level cache or from memory
  double memory = 0;  ///< come from memory
};

/// Estimated from windows of the graph and from the degrees of its rows: a plan does not bring the
/// edges of a graph that lies on a GPU.
ListLoads list_loads(const Graph& graph, const ListPolicy& policy, const CachedRows& cached);

}  // namespace tessera::ops
