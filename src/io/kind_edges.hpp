// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/io/open.hpp"

#include "io/name_index.hpp"

namespace tessera::io {

/// A kind at one end of the edges of a table.
struct EndKind {
  const std::string& name;
  const NameIndex& ids;
  const std::string& path;  ///< where its ids are from
};

/// Reads a table of edges between two kinds: a row for each vertex of the target, a column for each
/// of the source. Ends stand in the columns that are called as their kinds are, or else in those
/// that are called as ends of edges are, or else in the first two.
Graph read_kind_edges(const std::string& path, const EndKind& source, const EndKind& target,
                      const ReadOptions& options, std::vector<std::string>& notes);

}  // namespace tessera::io
