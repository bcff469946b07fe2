// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "graph/access.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/spmm/cuda/kernels.hpp"

namespace tessera::ops {

bool has_subnormal_weights(const Graph& graph) {
  using Of = detail::GraphAccess;
  for (const PlacedArray<float>& weights :
       {Of::values(graph), Of::row_scale(graph), Of::col_scale(graph)}) {
    if (weights.empty()) continue;
    const float smallest = weight_sizes(graph, weights).smallest;
    if (smallest > 0 && smallest < std::numeric_limits<float>::min()) return true;
  }
  return false;
}

}  // namespace tessera::ops
