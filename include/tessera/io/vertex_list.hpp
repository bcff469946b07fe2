// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/core/types.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/data/kinds.hpp"

/// Vertices of a data set that a text file names.
namespace tessera::io {

/// How a file calls the vertices: as the data set does. Where that has no names, by their numbers,
/// which begin with `base`.
struct VertexListOptions {
  int base = 0;
  /// Of a data set with these: a single vertex and a source are of the first kind, a target of the
  /// second; a name may be the one within its kind ("7"), or the whole ("user:7").
  Kinds kinds = {};
};

struct VertexPairs {
  std::vector<VertexId> sources, targets;
};

/// Pairs in the order of the file: a table whose columns `source` and `target`, or whatever else
/// edge lists call them, or the first two, name the ends. A vertex that the data set does not have
/// is a `bad_data` error that names the first of them and says how many there are.
VertexPairs read_vertex_pairs(const std::string& path, const Dataset& dataset,
                              const VertexListOptions& options = {});

/// One vertex in each line: the column `id`, or the first.
std::vector<VertexId> read_vertices(const std::string& path, const Dataset& dataset,
                                    const VertexListOptions& options = {});

}  // namespace tessera::io
