// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// Throws `invalid_argument` for a graph that was moved from: it still says what it was, and its
/// arrays may be gone.
void require_whole(const Graph& graph);

/// The same, and where targets and sources are not the same vertices.
void require_square(const Graph& graph, const char* what);

/// The same, and where the graph has a row or column scale.
void require_no_scales(const Graph& graph, const char* what);

/// Throws `bad_data` that names the first number that is not finite.
void require_finite(std::span<const float> numbers, const char* name, const char* where,
                    const char* fix);

}  // namespace tessera::detail
