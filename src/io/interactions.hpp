// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// A table of what vertices of one kind did with those of another (`EdgeListOptions::kinds`), such
/// as what users bought: an edge each way for each line. An id is a name within the kind of its
/// column, so that user 7 and item 7 are two vertices.
Dataset read_interactions(const std::string& path, const ReadOptions& options);

}  // namespace tessera::io
