// SPDX-License-Identifier: Apache-2.0
#include "io/kind_tables.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"
#include "io/kind_edges.hpp"
#include "io/node_table.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view nodes_prefix = "nodes_", edges_prefix = "edges_";

/// A table, and what its name says between the prefix and the ending.
struct TableFile {
  std::string words, path;
};

/// "user" of "nodes_user.csv.gz"; empty for other names.
std::string words_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  if (name.ends_with(".gz")) name.remove_suffix(3);
  for (const std::string_view ending : {".csv", ".tsv", ".txt"}) {
    if (name.ends_with(ending)) return std::string(name.substr(0, name.size() - ending.size()));
  }
  return {};
}

/// By what their names say.
std::vector<TableFile> tables_in(const std::string& folder, std::string_view prefix) {
  std::vector<TableFile> tables;
  std::error_code problem, ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string words = words_of(entry.path().filename().string(), prefix);
    if (!words.empty() && entry.is_regular_file(ignored)) {
      tables.push_back({words, entry.path().string()});
    }
  }
  std::sort(tables.begin(), tables.end(), [](const TableFile& a, const TableFile& b) {
    return std::pair(a.words, a.path) < std::pair(b.words, b.path);
  });
  return tables;
}

void require_one_each(const std::vector<TableFile>& tables) {
  const auto again =
      std::adjacent_find(tables.begin(), tables.end(),
                         [](const TableFile& a, const TableFile& b) { return a.words == b.words; });
  if (again == tables.end()) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("is there twice, beside {}", fs::path(again->path).filename().string()),
              std::next(again)->path, "keep one of both");
}

/// A kind whose table has been read.
struct Kind {
  std::string name, path;
  Dataset vertices;
  std::unique_ptr<NameIndex> ids;

  EndKind end() const { return {name, *ids, path}; }
};

class Reader {
 public:
  Reader(std::string folder, const ReadOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  RelationalData read() {
    RelationalData data;
    const std::vector<TableFile> tables = tables_in(folder_, nodes_prefix);
    require_one_each(tables);
    find_columns(tables);
    for (const TableFile& table : tables) read_kind(table, data.notes);
    std::vector<Relation> relations;
    std::vector<Graph> graphs;
    const std::vector<TableFile> edges = tables_in(folder_, edges_prefix);
    require_one_each(edges);
    for (const TableFile& table : edges) {
      relations.push_back(relation_of(table));
      const EndKind source = kind(relations.back().source).end();
      const EndKind target = kind(relations.back().target).end();
      graphs.push_back(read_kind_edges(table.path, source, target, options_, data.notes));
    }
    std::vector<VertexKind> kinds;
    for (Kind& kind : kinds_) {
      kinds.push_back({kind.name, kind.vertices.graph.num_rows()});
      data.kinds.push_back(std::move(kind.vertices));
    }
    data.graph = RelationalGraph(std::move(kinds), std::move(relations), std::move(graphs));
    return data;
  }

 private:
  const Kind& kind(std::int32_t number) const { return kinds_[static_cast<std::size_t>(number)]; }

  /// A column of a kind, given as KIND.COLUMN.
  struct Column {
    std::string kind, name;
  };
  static Column column_of(const std::string& given, const char* option,
                          const std::vector<TableFile>& tables) {
    std::vector<std::string> kinds;
    Column found;
    for (const TableFile& table : tables) {
      kinds.push_back(table.words);
      if (!given.starts_with(table.words + ".")) continue;
      found = {table.words, given.substr(table.words.size() + 1)};
    }
    if (!found.name.empty()) return found;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} names no kind of vertices and a column of theirs", in_quotes(given)),
        option, fmt::format("give KIND.COLUMN; there are {}", listed(kinds)));
  }

  void find_columns(const std::vector<TableFile>& tables) {
    if (!options_.nodes.label.empty()) {
      label_ = column_of(options_.nodes.label, "--label", tables);
    }
    for (const std::string& given : options_.nodes.drop) {
      dropped_.push_back(column_of(given, "--drop", tables));
    }
  }

  void read_kind(const TableFile& table, std::vector<std::string>& notes) {
    ReadOptions options;
    options.progress = options_.progress;
    options.nodes.path = table.path;
    if (table.words == label_.kind) options.nodes.label = label_.name;
    for (const Column& column : dropped_) {
      if (column.kind == table.words) options.nodes.drop.push_back(column.name);
    }
    NodeTable read = read_node_table(options);
    Dataset& vertices = read.dataset;
    vertices.name = table.words;
    vertices.graph = graph_without_edges(static_cast<VertexId>(read.ids->size()));
    // What another kind has for labels may tell those that are learned.
    if (!label_.kind.empty() && table.words != label_.kind) {
      vertices.labels = {};
      vertices.targets = {};
      vertices.class_names = {};
    }
    // One kind has labels; that the others have none needs no word.
    std::erase_if(vertices.notes,
                  [](const std::string& n) { return n.starts_with("labels: none"); });
    for (std::string& note : vertices.notes) {
      notes.push_back(note.starts_with("node table: ") ? note : table.words + ", " + note);
    }
    vertices.notes.clear();
    kinds_.push_back({table.words, table.path, std::move(vertices), std::move(read.ids)});
  }

  /// Names of kinds may have underscores, too.
  Relation relation_of(const TableFile& table) const {
    const std::string_view words = table.words;
    std::vector<Relation> found;
    for (std::size_t source = 0; source < kinds_.size(); ++source) {
      const std::string begin = kinds_[source].name + "_";
      if (!words.starts_with(begin)) continue;
      for (std::size_t target = 0; target < kinds_.size(); ++target) {
        const std::string end = "_" + kinds_[target].name;
        if (words.size() <= begin.size() + end.size() || !words.ends_with(end)) continue;
        const std::size_t length = words.size() - begin.size() - end.size();
        found.push_back({std::string(words.substr(begin.size(), length)),
                         static_cast<std::int32_t>(source), static_cast<std::int32_t>(target)});
      }
    }
    if (found.size() == 1) return found.front();
    std::vector<std::string> names;
    for (const Kind& kind : kinds_) names.push_back(kind.name);
    throw Error(ErrorCode::bad_data,
                found.empty() ? "does not name two kinds and a relation between them"
                              : "may be read as more than one relation",
                table.path,
                fmt::format("call it edges_SOURCE_RELATION_TARGET.csv, of kinds that have a table "
                            "nodes_KIND.csv: {}",
                            listed(names)));
  }

  std::string folder_;
  const ReadOptions& options_;
  Column label_;
  std::vector<Column> dropped_;
  std::vector<Kind> kinds_;
};

}  // namespace

bool holds_kind_tables(const std::string& folder) {
  return !tables_in(folder, nodes_prefix).empty();
}

RelationalData read_kind_tables(const std::string& folder, const ReadOptions& options) {
  return Reader(folder, options).read();
}

}  // namespace tessera::io
