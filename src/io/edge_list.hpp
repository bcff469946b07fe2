// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/io/edge_list.hpp"

namespace tessera::io {

/// An edge list of numbers from 0 to before `vertices`, which is known from elsewhere.
Dataset read_numbered_edges(const std::string& path, VertexId vertices, const ReadOptions& options);

}  // namespace tessera::io
