// SPDX-License-Identifier: Apache-2.0
#include "io/edge_list_layout.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::io {
namespace {

// What the columns of edge lists are called, by those who make them.
const std::vector<std::string_view> source_words = {
    "source",     "src",   "from",   "u",    "head", "source_id", "src_id",   "from_id",
    "fromnodeid", "node1", "node_1", "id_1", "id1",  "citing",    "follower", "i"};
const std::vector<std::string_view> target_words = {
    "target", "dst",    "to",   "v",   "tail",  "target_id", "dst_id", "to_id", "tonodeid",
    "node2",  "node_2", "id_2", "id2", "cited", "followee",  "j",      "dest",  "destination"};
const std::vector<std::string_view> weight_words = {"weight", "w", "value", "edge_weight"};

std::vector<std::string_view> all_words() {
  std::vector<std::string_view> words = source_words;
  words.insert(words.end(), target_words.begin(), target_words.end());
  words.insert(words.end(), weight_words.begin(), weight_words.end());
  return words;
}

/// The column whose name is one of these; -1 where there is none.
std::int64_t column_called(const TableLayout& table, const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const std::string name = lower_case(table.header[i]);
    if (std::find(words.begin(), words.end(), name) != words.end()) {
      return static_cast<std::int64_t>(i);
    }
  }
  return -1;
}

std::int64_t end_column(const TableLayout& table, const std::string& given, const char* option,
                        const std::vector<std::string_view>& words, std::int64_t usual,
                        const std::string& path) {
  if (!given.empty()) return table.require(given, option, path);
  const std::int64_t called = column_called(table, words);
  return called >= 0 ? called : usual;
}

std::int64_t weight_column(const EdgeListLayout& layout, const EdgeListOptions& options,
                           const std::string& path) {
  if (options.weight == "none") return -1;
  const TableLayout& table = layout.table;
  if (!options.weight.empty()) return table.require(options.weight, "--weight", path);
  if (table.has_header() || table.columns < 3) return column_called(table, weight_words);
  // Who names the columns of features names that of the weights, too.
  if (!options.features.empty()) return -1;
  if (table.columns > 3) {
    throw Error(ErrorCode::bad_data,
                fmt::format("has {} columns and no header that says what they are", table.columns),
                path, "give --weight N for the column of the weights, or --weight none");
  }
  return 3 - layout.source - layout.target;
}

/// The first id that is a name; empty where ids are numbers. They are names where most ids of a
/// column are no whole numbers: a few among numbers are mistakes, which reading the lines reports.
std::string find_name(const EdgeListLayout& layout) {
  for (const std::int64_t column : {layout.source, layout.target}) {
    std::vector<std::string> texts;
    std::size_t ids = 0;
    for (const std::vector<std::string>& row : layout.table.sample) {
      if (column >= std::ssize(row) || row[static_cast<std::size_t>(column)].empty()) continue;
      const std::string& id = row[static_cast<std::size_t>(column)];
      ++ids;
      if (!is_integer(id)) texts.push_back(id);
    }
    if (2 * texts.size() > ids) return texts.front();
  }
  return {};
}

/// True for "0 1 0" and "3;4": what a wrong separator, or a decimal comma, leaves of a line.
bool is_several_numbers(std::string_view id) {
  int numbers = 0;
  while (!id.empty()) {
    const std::size_t end = std::min(id.find_first_of(" \t,;|"), id.size());
    if (end > 0 && !is_real(id.substr(0, end))) return false;
    numbers += end > 0 ? 1 : 0;
    id.remove_prefix(std::min(end + 1, id.size()));
  }
  return numbers > 1;
}

void require_single_ids(const EdgeListLayout& layout, const std::string& path) {
  for (const std::vector<std::string>& row : layout.table.sample) {
    for (const std::int64_t column : {layout.source, layout.target}) {
      if (column >= std::ssize(row)) continue;
      const std::string& id = row[static_cast<std::size_t>(column)];
      if (!is_several_numbers(id)) continue;
      throw Error(
          ErrorCode::bad_data,
          fmt::format("'{}' is several numbers where one id of a vertex belongs", id), path,
          "give --separator, and decimal numbers with a point; --ids names if it is a name");
    }
  }
}

bool has_letters(const std::vector<std::string>& row) {
  return std::any_of(row.begin(), row.end(), [](const std::string& word) {
    return word.find_first_not_of("+-0123456789") != std::string::npos;
  });
}

bool is_prose(const EdgeListLayout& layout, const EdgeListOptions& options) {
  const TableLayout& table = layout.table;
  return layout.names && options.ids == IdKind::automatic && options.separator == 0 &&
         options.source.empty() && table.fields.by_blanks() && !table.has_header() &&
         std::any_of(table.sample.begin(), table.sample.end(), has_letters);
}

}  // namespace

HeaderWords edge_header_words() { return HeaderWords(all_words()); }

std::pair<std::int64_t, std::int64_t> end_columns(const TableLayout& table) {
  const std::int64_t source = end_column(table, "", "", source_words, 0, "");
  return {source, end_column(table, "", "", target_words, source == 1 ? 0 : 1, "")};
}

bool names_edges(const TableLayout& table) {
  return column_called(table, source_words) >= 0 && column_called(table, target_words) >= 0;
}

EdgeListLayout find_edge_list_layout(std::string_view head, const EdgeListOptions& options,
                                     const std::string& path) {
  EdgeListLayout layout;
  HeaderWords words(all_words());
  for (const std::string& name : {options.source, options.target, options.weight}) {
    words.add_given(name);
  }
  for (const std::string& name : options.features) words.add_given(name);
  layout.table = find_layout(head, options.separator, options.header, words, path);
  if (layout.table.columns < 2) {
    throw Error(ErrorCode::bad_data, "has one column where an edge list has two or three", path,
                "give a file with source and target on each line; --separator says what parts "
                "them, --format what else the file is");
  }
  layout.source = end_column(layout.table, options.source, "--source", source_words, 0, path);
  layout.target = end_column(layout.table, options.target, "--target", target_words,
                             layout.source == 1 ? 0 : 1, path);
  layout.weight = weight_column(layout, options, path);
  if (layout.source == layout.target || layout.weight == layout.source ||
      layout.weight == layout.target) {
    throw Error(ErrorCode::bad_data, "one column cannot be two of source, target and weight", path,
                "give --source, --target and --weight different columns");
  }
  if (options.ids == IdKind::automatic) layout.first_name = find_name(layout);
  layout.names = options.ids == IdKind::names || !layout.first_name.empty();
  if (layout.names && options.ids == IdKind::automatic && options.separator == 0) {
    require_single_ids(layout, path);
  }
  layout.prose = is_prose(layout, options);
  return layout;
}

}  // namespace tessera::io
