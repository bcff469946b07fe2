// SPDX-License-Identifier: Apache-2.0
#include "io/ogb_kinds.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

#include "core/listing.hpp"
#include "io/dataset_arrays.hpp"
#include "io/number_table.hpp"
#include "io/ogb_files.hpp"
#include "io/text.hpp"
#include "io/text_source.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* counts_name = "num-node-dict";
constexpr const char* relations_name = "triplet-type-list";

/// The folder that has the lists: OGB's own, or the "raw" below it.
fs::path folder_of(const std::string& file) { return fs::path(file).parent_path(); }

/// The words of each line of a short file, with commas between them.
std::vector<std::vector<std::string>> lines_of(const std::string& path) {
  TextSource source(path);
  std::vector<std::vector<std::string>> lines;
  while (const auto block = source.next()) {
    for (std::string_view text = block->text; !text.empty();) {
      std::string_view line = take_line(text);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      std::vector<std::string>& words = lines.emplace_back();
      for (std::size_t begin = 0; begin <= line.size();) {
        const std::size_t end = std::min(line.find(',', begin), line.size());
        words.emplace_back(line.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }
  return lines;
}

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code problem, ignored;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, problem)) {
    if (entry.is_regular_file(ignored)) {
      bytes += static_cast<std::int64_t>(entry.file_size(ignored));
    }
  }
  return bytes;
}

std::vector<VertexKind> read_kind_counts(const std::string& path) {
  const auto lines = lines_of(path);
  if (lines.size() != 2 || lines[0].size() != lines[1].size()) {
    throw Error(ErrorCode::bad_data, "is no line of kinds with a line of their counts", path,
                "copy the folder as it was downloaded");
  }
  const std::int64_t bytes = bytes_below(folder_of(path));
  std::vector<VertexKind> kinds;
  for (std::size_t k = 0; k < lines[0].size(); ++k) {
    const std::string& text = lines[1][k];
    std::int64_t count = -1;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (problem != std::errc() || stop != text.data() + text.size()) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("line 2: {} is no number of vertices", in_quotes(text)), path,
                  "copy the folder as it was downloaded");
    }
    kinds.push_back({lines[0][k], checked_vertex_count(count, bytes, path)});
  }
  return kinds;
}

std::int32_t number_of(const std::vector<VertexKind>& kinds, const std::string& name,
                       const std::string& path) {
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k].name == name) return static_cast<std::int32_t>(k);
  }
  throw Error(ErrorCode::bad_data,
              fmt::format("names the kind {}, of which there is no count", in_quotes(name)), path,
              "copy the folder as it was downloaded");
}

Graph read_edges(const fs::path& folder, VertexId sources, VertexId targets,
                 const ReadOptions& options) {
  const std::string path = find_ogb_file(folder.string(), "edge");
  if (path.empty()) {
    throw Error(ErrorCode::bad_data, "holds no edge.csv.gz", folder.string(),
                "copy the folder as it was downloaded");
  }
  NumberTable table(path, options.progress);
  const std::int64_t width = 2;
  if (table.num_rows() > 0 && table.num_columns() != width) {
    table.reject(0, fmt::format("has {} columns instead of 2", table.num_columns()),
                 "give a source and a target on each line");
  }
  const std::vector<std::int64_t> numbers = table.integers();
  std::vector<VertexId> rows, columns;
  for (std::int64_t i = 0; i < table.num_rows(); ++i) {
    const std::array<std::int64_t, 2> ends{numbers[static_cast<std::size_t>(width * i)],
                                           numbers[static_cast<std::size_t>(width * i + 1)]};
    for (const auto& [end, count] : {std::pair(ends[0], sources), std::pair(ends[1], targets)}) {
      if (end >= 0 && end < count) continue;
      table.reject(i, fmt::format("vertex {} is not one of {}", end, count),
                   "vertices of a kind are numbered from 0");
    }
    columns.push_back(static_cast<VertexId>(ends[0]));
    rows.push_back(static_cast<VertexId>(ends[1]));
  }
  BuildOptions build;
  build.duplicates = options.duplicates;
  return naming_file(path, [&] { return from_coo(targets, sources, rows, columns, {}, build); });
}

/// The parts of the only scheme that splits a kind's vertices.
void read_split(const fs::path& whole, const std::string& kind, Dataset& vertices) {
  std::error_code problem, ignored;
  std::vector<std::string> schemes;
  for (const fs::directory_entry& entry : fs::directory_iterator(whole / "split", problem)) {
    const fs::path folder = entry.path() / kind;
    if (fs::is_directory(folder, ignored)) schemes.push_back(folder.string());
  }
  if (schemes.size() > 1) {
    throw Error(ErrorCode::unsupported, fmt::format("holds {} splits of {}", schemes.size(), kind),
                (whole / "split").string(), "keep one of the folders");
  }
  if (!schemes.empty()) read_ogb_parts(schemes.front(), vertices);
}

Dataset read_vertices(const fs::path& raw, const VertexKind& kind, const ReadOptions& options) {
  Dataset vertices;
  vertices.name = kind.name;
  vertices.graph = graph_without_edges(kind.count);
  read_ogb_features((raw / "node-feat" / kind.name).string(), kind.count, options, vertices);
  read_ogb_labels((raw / "node-label" / kind.name).string(), kind.count, options, vertices);
  const fs::path whole = raw.filename() == "raw" ? raw.parent_path() : raw;
  read_split(whole, kind.name, vertices);
  return vertices;
}

}  // namespace

bool holds_ogb_kinds(const std::string& folder) {
  return !find_ogb_file(folder, relations_name).empty();
}

RelationalData read_ogb_kinds(const std::string& folder, const ReadOptions& options) {
  const std::string list = find_ogb_file(folder, relations_name);
  const std::string counts = find_ogb_file(folder, counts_name);
  if (list.empty() || counts.empty()) {
    throw Error(ErrorCode::bad_data,
                fmt::format("holds no {}.csv.gz", list.empty() ? relations_name : counts_name),
                folder, "copy the folder as it was downloaded");
  }
  const fs::path raw = folder_of(list);
  RelationalData data;
  std::vector<VertexKind> kinds = read_kind_counts(counts);
  std::vector<Relation> relations;
  std::vector<Graph> graphs;
  for (const std::vector<std::string>& words : lines_of(list)) {
    if (words.size() != 3) {
      throw Error(ErrorCode::bad_data, "has a line without a kind, a relation and a kind", list,
                  "copy the folder as it was downloaded");
    }
    const Relation relation{words[1], number_of(kinds, words[0], list),
                            number_of(kinds, words[2], list)};
    const std::string name = words[0] + "___" + words[1] + "___" + words[2];
    graphs.push_back(read_edges(raw / "relations" / name,
                                kinds[static_cast<std::size_t>(relation.source)].count,
                                kinds[static_cast<std::size_t>(relation.target)].count, options));
    relations.push_back(relation);
  }
  for (const VertexKind& kind : kinds) data.kinds.push_back(read_vertices(raw, kind, options));
  data.graph = RelationalGraph(std::move(kinds), std::move(relations), std::move(graphs));
  return data;
}

}  // namespace tessera::io
