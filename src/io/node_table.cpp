// SPDX-License-Identifier: Apache-2.0
#include "io/node_table.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/table_columns.hpp"

namespace tessera::io {
namespace {

// What columns are called by those who make such tables.
const std::vector<std::string_view> id_words = {"id",     "node",   "node_id",
                                                "nodeid", "vertex", "vertex_id"};
const std::vector<std::string_view> label_words = {"label", "class", "y"};
const std::vector<std::string_view> split_words = {"split"};

constexpr std::size_t max_classes = 65536;

std::vector<std::string_view> known_words() {
  std::vector<std::string_view> words = id_words;
  words.insert(words.end(), label_words.begin(), label_words.end());
  words.insert(words.end(), split_words.begin(), split_words.end());
  return words;
}

/// The column that was asked for, or the one that is called so; -1 where there is none.
std::int64_t choose(const TableRows& rows, const std::string& given, const char* option,
                    const std::vector<std::string_view>& words) {
  if (given == "none") return -1;
  const TableLayout& layout = rows.layout();
  if (!given.empty()) return layout.require(given, option, rows.path());
  for (std::size_t i = 0; i < layout.header.size(); ++i) {
    const std::string name = lower_case(layout.header[i]);
    if (std::find(words.begin(), words.end(), name) != words.end()) {
      return static_cast<std::int64_t>(i);
    }
  }
  return -1;
}

std::int64_t id_column(const TableRows& rows, const NodeTableOptions& options) {
  const std::int64_t column = choose(rows, options.id, "--id", id_words);
  if (column >= 0) return column;
  if (!rows.layout().has_header()) return 0;
  throw Error(
      ErrorCode::bad_data,
      fmt::format("has no column called id: there are {}", fmt::join(rows.layout().header, ", ")),
      rows.path(), "say which column holds the ids with --id COLUMN");
}

std::vector<std::int64_t> feature_columns(const TableRows& rows, const NodeTableOptions& options,
                                          const std::vector<std::int64_t>& taken) {
  std::vector<std::int64_t> dropped = taken;
  for (const std::string& name : options.drop) {
    dropped.push_back(rows.layout().require(name, "--drop", rows.path()));
  }
  std::vector<std::int64_t> columns;
  for (const std::string& name : options.features) {
    columns.push_back(rows.layout().require(name, "--features", rows.path()));
  }
  if (columns.empty()) {
    for (std::int64_t i = 0; i < rows.layout().columns; ++i) columns.push_back(i);
  }
  std::erase_if(columns, [&](std::int64_t column) {
    return std::find(dropped.begin(), dropped.end(), column) != dropped.end();
  });
  return columns;
}

std::unique_ptr<NameIndex> read_ids(TableRows& rows, std::int64_t column,
                                    const Progress& progress) {
  auto ids = std::make_unique<NameIndex>();
  rows.for_each("reading ids", progress, [&](RowCursor& cursor) {
    while (cursor.next()) {
      const std::string_view id = cursor.field(column);
      if (id.empty()) {
        throw LineProblem{cursor.at(), fmt::format("column '{}' is empty", rows.name_of(column)),
                          "give every vertex an id"};
      }
      if (!ids->add(id, cursor.row())) {
        throw LineProblem{cursor.at(),
                          fmt::format("id '{}' occurs more than once", id.substr(0, 40)),
                          "give every vertex one line"};
      }
    }
  });
  ids->number_all();
  return ids;
}

enum class Part : std::uint8_t { none, train, validation, test };

Part parse_part(std::string_view field, const char* at) {
  const std::string word = lower_case(field);
  if (word == "train" || word == "training") return Part::train;
  if (word == "val" || word == "valid" || word == "validation" || word == "dev") {
    return Part::validation;
  }
  if (word == "test" || word == "testing") return Part::test;
  if (is_missing(field) || word == "none" || word == "unused") return Part::none;
  throw LineProblem{at, fmt::format("'{}' is no part of a split", field.substr(0, 40)),
                    "use train, val, test or nothing, or give --split-column none"};
}

void read_split(TableRows& rows, std::int64_t column, const Progress& progress, Dataset& dataset) {
  std::vector<Part> parts(static_cast<std::size_t>(rows.num_rows()), Part::none);
  rows.for_each("reading the split", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < rows.num_rows()) {
      parts[static_cast<std::size_t>(cursor.row())] = parse_part(cursor.field(column), cursor.at());
    }
  });
  const auto members = [&](Part part) {
    std::vector<std::int64_t> vertices;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == part) vertices.push_back(static_cast<std::int64_t>(i));
    }
    return vertices;
  };
  dataset.train = members(Part::train);
  dataset.validation = members(Part::validation);
  dataset.test = members(Part::test);
}

}  // namespace

NodeTable read_node_table(const ReadOptions& options) {
  const NodeTableOptions& given = options.nodes;
  TableRows rows(given.path, given.separator, {}, known_words(), options.progress);
  if (rows.num_rows() > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::unsupported, "has more rows than a graph has vertices", given.path,
                "use at most 2^31 - 1");
  }
  const std::int64_t id = id_column(rows, given);
  const std::int64_t label = choose(rows, given.label, "--label", label_words);
  const std::int64_t split = choose(rows, given.split, "--split-column", split_words);
  NodeTable table;
  table.ids = read_ids(rows, id, options.progress);
  table.dataset.vertex_names = table.ids->names();
  const std::vector<std::int64_t> columns = feature_columns(rows, given, {id, label, split});
  if (!columns.empty()) {
    TableFeatures features = read_features(
        rows, examine(rows, columns, max_categories, "--drop", options.progress), options.progress);
    table.dataset.features = std::move(features.values);
    table.dataset.feature_names = std::move(features.names);
  }
  if (label >= 0) {
    const auto column =
        examine(rows, {label}, max_classes, "--label none instead of", options.progress);
    TableLabels labels = read_labels(rows, column.front(), options.progress);
    table.dataset.labels = std::move(labels.classes);
    table.dataset.class_names = std::move(labels.names);
  }
  if (split >= 0) read_split(rows, split, options.progress, table.dataset);
  return table;
}

}  // namespace tessera::io
