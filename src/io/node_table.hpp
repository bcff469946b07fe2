// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/io/open.hpp"

#include "io/name_index.hpp"

namespace tessera::io {

/// What a table says about vertices: everything of a data set but the graph.
struct NodeTable {
  Dataset dataset;
  std::unique_ptr<NameIndex> ids;
};

/// Reads `options.nodes.path`, a text with one line per vertex.
NodeTable read_node_table(const ReadOptions& options);

}  // namespace tessera::io
