// SPDX-License-Identifier: Apache-2.0
#include "io/node_table.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

#include "core/listing.hpp"
#include "io/edge_list_layout.hpp"
#include "io/reading_notes.hpp"
#include "io/table_columns.hpp"
#include "io/target_columns.hpp"
#include "io/time_column.hpp"

namespace tessera::io {
namespace {

// What columns are called by those who make such tables.
const std::vector<std::string_view> id_words = {"id",     "node",   "node_id",
                                                "nodeid", "vertex", "vertex_id"};
const std::vector<std::string_view> split_words = {"split"};

constexpr std::size_t max_classes = 65536;
constexpr const char* no_column = "none";

/// The parts between commas of what names several columns.
std::vector<std::string> parted_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) names.push_back(part);
  if (text.ends_with(',')) names.emplace_back();
  return names;
}

HeaderWords header_words(const NodeTableOptions& options) {
  std::vector<std::string_view> known = id_words;
  known.insert(known.end(), label_words.begin(), label_words.end());
  known.insert(known.end(), split_words.begin(), split_words.end());
  HeaderWords words(std::move(known));
  words.ids = id_words;
  for (const std::string& name : {options.id, options.split, options.time}) words.add_given(name);
  for (const std::string& name : parted_names(options.label)) words.add_given(name);
  for (const std::string& name : options.features) words.add_given(name);
  for (const std::string& name : options.drop) words.add_given(name);
  return words;
}

bool contains(const std::vector<std::int64_t>& columns, std::int64_t column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

/// Which column is what.
class ColumnRoles {
 public:
  ColumnRoles(const TableRows& rows, const NodeTableOptions& options)
      : rows_(rows),
        options_(options),
        named_features_(required(options.features, "--features")),
        dropped_(required(options.drop, "--drop")) {
    id = id_column();
    labels = label_columns();
    split = first_of(options.split, "--split-column", split_words);
    time = first_of(options.time, "--split-by-time", {});
    require_no_contradiction();
    find_features();
  }

  std::int64_t id = -1, split = -1, time = -1;  ///< -1: there is none
  std::vector<std::int64_t> labels, features;

  std::string note() const {
    std::string text =
        fmt::format("{} in {}, {}; ids in {}", counted(rows_.num_rows(), "vertex", "vertices"),
                    file_name(rows_.path()), rows_.layout().form(), named(id));
    if (split < 0 && time < 0) text += ", no split";
    if (rows_.num_remarks() > 0) {
      text += fmt::format("; {} left out", counted(rows_.num_remarks(), "remark", "remarks"));
    }
    return note_about(about::node_table, text);
  }

  /// What becomes of columns that have none of the roles, or one that may tell the label.
  std::vector<std::string> notes_on_others() const {
    std::vector<std::string> left_out, leaks, notes;
    // Times go before a column that says the split.
    const std::int64_t by = time >= 0 ? time : split;
    for (std::int64_t column = 0; column < rows_.layout().columns; ++column) {
      const bool is_feature = contains(features, column);
      if (is_feature && !labels.empty() && !contains(named_features_, column) &&
          is_called(column, label_words)) {
        leaks.push_back(named(column));
      } else if (!is_feature && column != id && !contains(labels, column) && column != by) {
        left_out.push_back(named(column));
      }
    }
    if (!left_out.empty()) notes.push_back(note_about(about::left_out, listed(left_out)));
    if (!leaks.empty()) {
      notes.push_back(
          fmt::format("columns that are called as labels are became features: {} "
                      "(--drop leaves them out, if they tell the label)",
                      listed(leaks)));
    }
    return notes;
  }

 private:
  std::string named(std::int64_t column) const { return rows_.layout().named(column); }

  std::vector<std::int64_t> required(const std::vector<std::string>& names,
                                     const char* option) const {
    std::vector<std::int64_t> columns;
    for (const std::string& name : names) {
      columns.push_back(rows_.layout().require(name, option, rows_.path()));
    }
    return columns;
  }

  bool is_called(std::int64_t column, const std::vector<std::string_view>& words) const {
    if (!rows_.layout().has_header()) return false;
    const std::string name = lower_case(rows_.name_of(column));
    return std::find(words.begin(), words.end(), name) != words.end();
  }

  /// Columns that are called so and have no other role.
  std::vector<std::int64_t> called(const std::vector<std::string_view>& words) const {
    std::vector<std::int64_t> columns;
    for (std::int64_t column = 0; column < rows_.layout().columns; ++column) {
      if (is_called(column, words) && column != id && !contains(dropped_, column) &&
          !contains(named_features_, column)) {
        columns.push_back(column);
      }
    }
    return columns;
  }

  /// The column that was asked for, or the first that is called so.
  std::int64_t first_of(const std::string& given, const char* option,
                        const std::vector<std::string_view>& words) const {
    if (given == no_column) return -1;
    const bool may_be_none = words != id_words;
    if (!given.empty()) {
      return rows_.layout().require(given, option, rows_.path(), may_be_none ? ", or none" : "");
    }
    const std::vector<std::int64_t> columns = called(words);
    return columns.empty() ? -1 : columns.front();
  }

  std::int64_t id_column() const {
    const std::int64_t column = first_of(options_.id, "--id", id_words);
    if (column >= 0) return column;
    if (!rows_.layout().has_header()) return 0;
    throw Error(ErrorCode::bad_data,
                fmt::format("has no column called id: there are {}",
                            fmt::join(rows_.layout().header, ", ")),
                rows_.path(),
                names_edges(rows_.layout())
                    ? "name the file of the edges first, and the table of their ends with --nodes"
                    : "say which column holds the ids with --id COLUMN");
  }

  /// What may be the label under another name must not be learnt from.
  std::vector<std::int64_t> label_columns() const {
    const std::string& given = options_.label;
    if (given.find(',') != std::string::npos && rows_.layout().find(given) < 0) {
      std::vector<std::int64_t> several;
      for (const std::int64_t column : required(parted_names(given), "--label")) {
        if (contains(several, column)) {
          throw Error(ErrorCode::invalid_argument, named(column) + " is named twice", "--label",
                      "name each column once");
        }
        several.push_back(column);
      }
      return several;
    }
    const std::int64_t column = label_column();
    if (column < 0) return {};
    return {column};
  }

  std::int64_t label_column() const {
    const std::vector<std::int64_t> columns = called(label_words);
    if (options_.label.empty() && columns.size() > 1) {
      std::vector<std::string> names;
      for (const std::int64_t column : columns) names.push_back(in_quotes(rows_.name_of(column)));
      throw Error(ErrorCode::bad_data,
                  fmt::format("has several columns that may be the label: {}", listed(names)),
                  rows_.path(),
                  fmt::format("say which with --label {}, and leave out the others with --drop {}",
                              rows_.name_of(columns[0]), rows_.name_of(columns[1])));
    }
    return first_of(options_.label, "--label", label_words);
  }

  /// A column has one role.
  void require_no_contradiction() const {
    if (contains(labels, id) || split == id || contains(labels, split)) {
      throw Error(ErrorCode::invalid_argument, "one column cannot be two of id, label and split",
                  rows_.path(), "give --id, --label and --split-column different columns");
    }
    if (time >= 0 && !options_.split.empty() && split >= 0) {
      throw Error(ErrorCode::invalid_argument, "two columns to split the vertices by",
                  "--split-by-time", "leave out --split-column");
    }
    if (time >= 0 && (time == id || contains(labels, time))) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("column {} cannot be times and {}", rows_.layout().named(time),
                              time == id ? "ids" : "labels"),
                  rows_.path(), "give --split-by-time a column of its own");
    }
    const auto reject = [&](std::int64_t column, const char* other, const char* option) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("column {} has two roles: {} and {}", rows_.layout().named(column),
                              other, option),
                  rows_.path(), fmt::format("leave it out of {}", option));
    };
    const auto check = [&](const std::vector<std::int64_t>& columns, const char* option) {
      if (contains(columns, id)) reject(id, "--id", option);
      for (const std::int64_t label : labels) {
        if (contains(columns, label)) reject(label, "--label", option);
      }
      if (split >= 0 && contains(columns, split)) reject(split, "--split-column", option);
      if (time >= 0 && contains(columns, time)) reject(time, "--split-by-time", option);
    };
    check(named_features_, "--features");
    check(dropped_, "--drop");
    for (const std::int64_t column : named_features_) {
      if (contains(dropped_, column)) reject(column, "--features", "--drop");
    }
  }

  void find_features() {
    std::vector<std::int64_t> columns = named_features_;
    if (columns.empty()) {
      for (std::int64_t i = 0; i < rows_.layout().columns; ++i) columns.push_back(i);
    }
    for (const std::int64_t column : columns) {
      const bool is_other =
          column == id || contains(labels, column) || column == split || column == time;
      const bool is_repeated = !named_features_.empty() && contains(features, column);
      if (is_other || is_repeated || contains(dropped_, column)) continue;
      features.push_back(column);
    }
    require_different_names();
  }

  void require_different_names() const {
    std::map<std::string, std::int64_t> names;
    for (const std::int64_t column : features) {
      const auto [found, is_new] = names.emplace(rows_.name_of(column), column);
      if (is_new) continue;
      throw Error(
          ErrorCode::bad_data,
          fmt::format("columns {} and {} are both called {}", found->second + 1, column + 1,
                      in_quotes(found->first)),
          rows_.path(),
          fmt::format("give every column a name of its own, or leave one out with --drop {}",
                      column + 1));
    }
  }

  const TableRows& rows_;
  const NodeTableOptions& options_;
  std::vector<std::int64_t> named_features_, dropped_;
};

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
  dataset.notes.push_back(note_about(
      about::split, fmt::format("{}, {} train, {} validation, {} test", rows.layout().named(column),
                                grouped(dataset.train.size()), grouped(dataset.validation.size()),
                                grouped(dataset.test.size()))));
}

}  // namespace

NodeTable read_node_table(const ReadOptions& options) {
  const NodeTableOptions& given = options.nodes;
  TableRows rows(given.path, given.separator, given.header, header_words(given), options.progress);
  if (rows.num_rows() > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::unsupported, "has more rows than a graph has vertices", given.path,
                "use at most 2^31 - 1");
  }
  const ColumnRoles roles(rows, given);
  NodeTable table;
  Dataset& dataset = table.dataset;
  dataset.notes.push_back(roles.note());
  table.ids = read_ids(rows, roles.id, options.progress);
  dataset.vertex_names = table.ids->names();
  if (roles.labels.empty()) {
    dataset.notes.push_back(note_about(about::labels, "none (--label names their column)"));
  } else if (given.numbers || roles.labels.size() > 1) {
    add_targets(rows, roles.labels, options.progress, dataset);
  } else {
    const Column column =
        examine(rows, roles.labels, max_classes, "--label none instead of", options.progress)
            .front();
    if (holds_fractions(column)) {
      add_targets(rows, roles.labels, options.progress, dataset);
    } else {
      add_labels(rows, column, options.progress, dataset);
    }
  }
  if (roles.time >= 0) {
    split_by_time_column(rows, roles.time, given.time_shares, options.progress, dataset);
  } else if (roles.split >= 0) {
    read_split(rows, roles.split, options.progress, dataset);
  }
  if (!roles.features.empty()) {
    add_features(rows, examine(rows, roles.features, max_categories, "--drop", options.progress),
                 options.progress, dataset);
  }
  for (std::string& note : roles.notes_on_others()) dataset.notes.push_back(std::move(note));
  return table;
}

}  // namespace tessera::io
