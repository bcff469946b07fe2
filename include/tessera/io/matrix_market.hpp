// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// Matrix Market coordinate files, plain or gzipped: general, symmetric or skew-symmetric; pattern,
/// real or integer. Symmetric files are expanded. Entry (i, j) = target i, source j.
Dataset read_matrix_market(const std::string& path, const ReadOptions& options = {});

/// Writes the graph as `general`, with values where it has any (scales multiplied in).
void write_matrix_market(const Graph& graph, const std::string& path,
                         const Progress& progress = {});

}  // namespace tessera::io
