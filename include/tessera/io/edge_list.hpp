// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// A text with one edge per line, source first, plain or gzipped: CSV, TSV, SNAP's lists and their
/// kin. `options.edges` says what cannot be found out from the file, and `options.nodes` names a
/// table of the vertices, if there is one. docs/formats.md has the rules.
Dataset read_edge_list(const std::string& path, const ReadOptions& options = {});

}  // namespace tessera::io
