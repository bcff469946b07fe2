// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/graph/graph.hpp"

namespace tessera {

/// A number that tells the structure of one graph from another's: shape, offsets and columns, but
/// not the values. The same on every machine and for any number of threads. Computed at the first
/// call, then kept with the graph.
std::uint64_t fingerprint(const Graph& graph);

/// The same as 16 hexadecimal digits.
std::string fingerprint_text(const Graph& graph);

}  // namespace tessera
