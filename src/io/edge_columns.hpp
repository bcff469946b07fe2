// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/io/open.hpp"

#include "io/edge_list_layout.hpp"
#include "io/table_rows.hpp"

namespace tessera::io {

/// The columns of an edge list that `options.edges.features` names. One that is an end or the
/// weight is an error.
std::vector<std::int64_t> edge_feature_columns(const EdgeListLayout& layout,
                                               const std::vector<std::string>& names,
                                               const std::string& path);

/// What these columns hold, as features of edges. The notes of the data set say what was decided.
EdgeFeatures read_edge_features(TableRows& rows, const std::vector<std::int64_t>& columns,
                                const ReadOptions& options, Dataset& dataset);

/// Gives the edges of the data set, which were read from this file, features from such columns.
/// `vertex_of` reads an id that is known to be right; -1: its edges were dropped.
void add_edge_features(const std::string& path, const EdgeListLayout& layout,
                       const std::vector<std::int64_t>& columns,
                       FunctionRef<VertexId(std::string_view id)> vertex_of,
                       const ReadOptions& options, Dataset& dataset);

}  // namespace tessera::io
