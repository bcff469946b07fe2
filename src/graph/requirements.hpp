// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// Throws `invalid_argument` unless targets and sources are the same vertices.
void require_square(const Graph& graph, const char* what);

/// Throws `invalid_argument` if the graph has a row or column scale.
void require_no_scales(const Graph& graph, const char* what);

/// Throws `bad_data` that names the first number that is not finite.
void require_finite(std::span<const float> numbers, const char* name, const char* where,
                    const char* fix);

}  // namespace tessera::detail
