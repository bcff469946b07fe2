// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/size_range.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {

/// The sizes of a graph's values or of one of its scales. An array that lies on a GPU comes to this
/// process for them, unless somebody has found them there.
SizeRange weight_sizes(const Graph& graph, const PlacedArray<float>& weights);

/// Under which a graph keeps, for as long as a plan is made, what was found on a GPU: an array of
/// the graph that has the address lives as long.
std::string weight_sizes_key(const float* there);

}  // namespace tessera
