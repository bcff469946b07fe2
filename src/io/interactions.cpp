// SPDX-License-Identifier: Apache-2.0
#include "io/interactions.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

#include "core/listing.hpp"
#include "io/dataset_arrays.hpp"
#include "io/edge_arrays.hpp"
#include "io/edge_columns.hpp"
#include "io/edge_list_layout.hpp"
#include "io/name_index.hpp"
#include "io/reading_notes.hpp"
#include "io/table_rows.hpp"

namespace tessera::io {
namespace {

void require_plain(const ReadOptions& options) {
  const EdgeListOptions& edges = options.edges;
  const std::pair<bool, const char*> useless[] = {{!options.nodes.path.empty(), "--nodes"},
                                                  {!edges.weight.empty(), "--weight"},
                                                  {edges.base != 0, "--base"},
                                                  {edges.ids == IdKind::numbers, "--ids"}};
  for (const auto& [given, option] : useless) {
    if (!given) continue;
    throw Error(ErrorCode::invalid_argument, "does nothing with --kinds", option, "leave it out");
  }
}

HeaderWords words_of(const EdgeListOptions& options) {
  HeaderWords words = edge_header_words();
  for (const std::string& name :
       {options.kinds.source, options.kinds.target, options.source, options.target}) {
    words.add_given(name);
  }
  for (const std::string& name : options.features) words.add_given(name);
  return words;
}

/// A column as an option calls it, or else by its kind, or else where it usually is.
std::int64_t column_of(const TableLayout& table, const std::string& said, const char* option,
                       const std::string& kind, std::int64_t usual, const std::string& path) {
  if (!said.empty()) return table.require(said, option, path);
  const std::int64_t called = table.has_header() ? table.find(kind) : -1;
  return called >= 0 ? called : usual;
}

EdgeListLayout layout_of(const TableRows& rows, const EdgeListOptions& options) {
  const std::string& path = rows.path();
  EdgeListLayout layout;
  layout.table = rows.layout();
  if (layout.table.columns < 2) {
    throw Error(ErrorCode::bad_data, "has one column where interactions have two", path,
                fmt::format("give a table with a {} and a {} on each line", options.kinds.source,
                            options.kinds.target));
  }
  const auto [first, second] = end_columns(layout.table);
  layout.source =
      column_of(layout.table, options.source, "--source", options.kinds.source, first, path);
  layout.target =
      column_of(layout.table, options.target, "--target", options.kinds.target, second, path);
  if (layout.source != layout.target) return layout;
  throw Error(ErrorCode::bad_data,
              fmt::format("{} would hold both kinds", layout.table.named(layout.source)), path,
              "name the columns with --source and --target");
}

/// The vertices of a table's lines, by number.
struct Ends {
  std::vector<VertexId> sources, targets;
};

class Reader {
 public:
  Reader(const std::string& path, const ReadOptions& options)
      : options_(options),
        rows_(path, options.edges.separator, options.edges.header, words_of(options.edges),
              options.progress),
        layout_(layout_of(rows_, options.edges)) {}

  Dataset read() {
    collect_names();
    Dataset dataset;
    dataset.name = stem_of(rows_.path());
    dataset.vertex_names = names();
    dataset.edges_stored = 2 * rows_.num_rows();
    const Ends ends = find_ends();
    BuildOptions build;
    build.duplicates = options_.duplicates;
    dataset.graph = from_edges(static_cast<VertexId>(dataset.vertex_names.size()), ends.sources,
                               ends.targets, {}, build);
    add_features(ends, dataset);
    dataset.notes.insert(dataset.notes.begin(), note());
    note_merged_edges(dataset.edges_stored, options_.duplicates, dataset);
    dataset.validate(options_.nonfinite);
    return dataset;
  }

 private:
  void collect_names() {
    rows_.for_each("reading ids", options_.progress, [&](RowCursor& cursor) {
      while (cursor.next()) {
        sources_.add(cursor.field(layout_.source), cursor.row());
        targets_.add(cursor.field(layout_.target), cursor.row());
      }
    });
    sources_.number_all();
    targets_.number_all();
  }

  Names names() const {
    std::vector<std::string> all;
    const std::pair<const NameIndex*, const std::string*> kinds[] = {
        {&sources_, &options_.edges.kinds.source}, {&targets_, &options_.edges.kinds.target}};
    for (const auto& [index, kind] : kinds) {
      const Names own = index->names();
      for (std::int64_t i = 0; i < own.size(); ++i) all.push_back(name_of_kind(*kind, own[i]));
    }
    return Names(all);
  }

  /// Every line one way, and then every line the other way.
  Ends find_ends() {
    const auto lines = static_cast<std::size_t>(rows_.num_rows());
    const auto users = static_cast<VertexId>(sources_.size());
    Ends ends{std::vector<VertexId>(2 * lines), std::vector<VertexId>(2 * lines)};
    rows_.for_each("reading edges", options_.progress, [&](RowCursor& cursor) {
      while (cursor.next()) {
        const auto row = static_cast<std::size_t>(cursor.row());
        const VertexId source = sources_.find(cursor.field(layout_.source));
        const VertexId target = users + targets_.find(cursor.field(layout_.target));
        ends.sources[row] = ends.targets[lines + row] = source;
        ends.targets[row] = ends.sources[lines + row] = target;
      }
    });
    return ends;
  }

  void add_features(const Ends& ends, Dataset& dataset) {
    const std::vector<std::int64_t> columns =
        edge_feature_columns(layout_, options_.edges.features, rows_.path());
    if (columns.empty()) return;
    EdgeFeatures features = read_edge_features(rows_, columns, options_, dataset);
    const Matrix<float>& once = *features.matrix;
    auto both = std::make_shared<Matrix<float>>(2 * once.rows(), once.cols());
    for (std::int64_t row = 0; row < both->rows(); ++row) {
      std::copy_n(once.row(row % once.rows()), once.cols(), both->row(row));
    }
    features.matrix = std::move(both);
    sort_edge_features(dataset.graph, ends.sources, ends.targets, options_.duplicates, rows_.path(),
                       features);
    dataset.edge_features = std::move(features);
  }

  std::string note() const {
    const Kinds& kinds = options_.edges.kinds;
    const TableLayout& table = layout_.table;
    return note_about(
        about::edge_list,
        fmt::format("{} in {}, {}, between {} of {} ({}) and {} of {} ({}), each an edge both ways",
                    counted(rows_.num_rows(), "interaction", "interactions"),
                    file_name(rows_.path()), table.form(), sources_.size(), kinds.source,
                    table.named(layout_.source), targets_.size(), kinds.target,
                    table.named(layout_.target)));
  }

  const ReadOptions& options_;
  TableRows rows_;
  EdgeListLayout layout_;
  NameIndex sources_, targets_;
};

}  // namespace

Dataset read_interactions(const std::string& path, const ReadOptions& options) {
  require_plain(options);
  return Reader(path, options).read();
}

}  // namespace tessera::io
