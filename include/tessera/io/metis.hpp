// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// METIS's `.graph`: after a line with the numbers of vertices and edges, one line per vertex with
/// its neighbours, counted from 1, and their weights where the file says so. Weights of vertices
/// are read over.
Dataset read_metis(const std::string& path, const ReadOptions& options = {});

}  // namespace tessera::io
