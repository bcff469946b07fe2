// SPDX-License-Identifier: Apache-2.0
#include "io/edge_columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/edge_arrays.hpp"
#include "io/table_columns.hpp"

namespace tessera::io {

std::vector<std::int64_t> edge_feature_columns(const EdgeListLayout& layout,
                                               const std::vector<std::string>& names,
                                               const std::string& path) {
  std::vector<std::int64_t> columns;
  for (const std::string& name : names) {
    const std::int64_t column = layout.table.require(name, "--edge-features", path);
    if (column == layout.source || column == layout.target || column == layout.weight) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("column {} is an end of the edges, or their weight",
                              layout.table.named(column)),
                  "--edge-features", "name other columns");
    }
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
      columns.push_back(column);
    }
  }
  return columns;
}

void add_edge_features(const std::string& path, const EdgeListLayout& layout,
                       const std::vector<std::int64_t>& columns,
                       FunctionRef<VertexId(std::string_view id)> vertex_of,
                       const ReadOptions& options, Dataset& dataset) {
  if (columns.empty()) return;
  TableRows rows(path, layout.table.fields.separator(), layout.table.has_header(), {},
                 options.progress);
  const auto size = static_cast<std::size_t>(rows.num_rows());
  std::vector<VertexId> sources(size, -1), targets(size, -1);
  rows.for_each("reading ends of edges", options.progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < rows.num_rows()) {
      const auto row = static_cast<std::size_t>(cursor.row());
      sources[row] = vertex_of(cursor.field(layout.source));
      targets[row] = vertex_of(cursor.field(layout.target));
    }
  });
  dataset.edge_features =
      edge_features_of(rows,
                       examine(rows, columns, max_categories,
                               "--edge-features, which must not name", options.progress),
                       options.progress, dataset);
  sort_edge_features(dataset.graph, sources, targets, options.duplicates, path,
                     dataset.edge_features);
}

}  // namespace tessera::io
