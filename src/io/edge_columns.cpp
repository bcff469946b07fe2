// SPDX-License-Identifier: Apache-2.0
#include "io/edge_columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

#include "core/listing.hpp"
#include "io/edge_arrays.hpp"
#include "io/table_columns.hpp"

namespace tessera::io {
namespace {

/// A time that is missing has no mean to stand for it: edges in the middle of all times would be
/// learned from before they are there.
void require_times(const std::vector<Column>& columns, const std::string& time,
                   const std::string& path) {
  for (const Column& column : columns) {
    if (column.name != time || column.missing == 0) continue;
    throw Error(ErrorCode::bad_data,
                fmt::format("the column of times, {}, has no value for {} of the edges",
                            in_quotes(time), grouped(column.missing)),
                path, "give every edge a time, or leave those without one out");
  }
}

}  // namespace

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

EdgeFeatures read_edge_features(TableRows& rows, const std::vector<std::int64_t>& columns,
                                const ReadOptions& options, Dataset& dataset) {
  const std::vector<Column> found = examine(
      rows, columns, max_categories, "--edge-features, which must not name", options.progress);
  require_times(found, options.edges.time, rows.path());
  return edge_features_of(rows, found, options.progress, dataset);
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
  dataset.edge_features = read_edge_features(rows, columns, options, dataset);
  sort_edge_features(dataset.graph, sources, targets, options.duplicates, path,
                     dataset.edge_features);
}

}  // namespace tessera::io
