// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/data/relational_data.hpp"
#include "tessera/io/open.hpp"

/// Graphs with kinds of vertices and relations: folders of tables, and those of OGB.
namespace tessera::io {

/// True for a folder with a table of vertices of a kind, or with OGB's list of kinds.
bool holds_relational(const std::string& path);

/// Reads such a folder.
///
///     nodes_KIND.csv                      a line for each vertex of a kind
///     edges_SOURCE_RELATION_TARGET.csv    a line for each edge of a relation, by the ids of both
///
/// Also .tsv and .txt, each plain or with .gz behind it. Kinds and relations come in the order of
/// their names. Of `options` these count: `nodes.label` and `nodes.drop`, whose columns are given
/// as KIND.COLUMN, `nodes.unknown`, `duplicates` and `progress`.
RelationalData read_relational(const std::string& path, const ReadOptions& options = {});

}  // namespace tessera::io
