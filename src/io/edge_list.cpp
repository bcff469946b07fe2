// SPDX-License-Identifier: Apache-2.0
#include "io/edge_list.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/edge_lines.hpp"
#include "io/node_table.hpp"
#include "io/reading_notes.hpp"

namespace tessera::io {
namespace {

std::string_view first_block(TextSource& source, std::int64_t& offset) {
  const auto block = source.next();
  if (!block) throw Error(ErrorCode::bad_data, "is empty", source.path(), damaged_file_fix);
  offset = block->offset;
  return block->text;
}

std::unique_ptr<NameIndex> collect_names(TextSource& source, std::int64_t begin,
                                         const EdgeLines& lines, const Progress& progress) {
  auto names = std::make_unique<NameIndex>();
  for_each_chunk(
      source, begin, "reading ids", progress, [](std::int64_t) {},
      [&](std::int64_t, const TextChunk& chunk) { lines.collect(chunk, *names); },
      [](std::int64_t) {});
  names->number_all();
  return names;
}

std::string in_quotes(const Names& names, VertexId vertex) {
  return fmt::format("'{}'", names[vertex].substr(0, 40));
}

/// What the two ways of naming vertices have in common: `parse` puts the edges of a chunk into a
/// list, `name` says what the text calls a vertex.
template <class Name, class Parse>
Graph build(TextSource& source, std::int64_t begin, std::int64_t vertices, bool weighted,
            std::int64_t& entries, const ReadOptions& options, Name&& name, Parse&& parse) {
  const auto keep_count = [&](std::int64_t count) { entries = count; };
  return build_from_text(
      source, {begin, vertices, vertices, weighted, 0, "target", "source", name, parse, keep_count},
      options);
}

/// What was guessed about the text, as no option says it.
void note_layout(const EdgeListLayout& layout, const EdgeListOptions& said, Dataset& dataset) {
  const TableLayout& table = layout.table;
  std::vector<std::string> found;
  if (!said.header) {
    found.push_back(table.has_header() ? fmt::format("the first line is a header ({})",
                                                     fmt::join(table.header, ", "))
                                       : "the first line is an edge, no header");
  }
  if (said.ids == IdKind::automatic) {
    found.push_back(layout.names ? fmt::format("ids are names, as '{}' is no whole number",
                                               layout.first_name.substr(0, 40))
                                 : "ids are numbers of vertices");
  }
  if (!found.empty()) dataset.notes.push_back(fmt::format("{}", fmt::join(found, "; ")));
  std::vector<std::string> unused;
  for (std::int64_t column = 0; column < table.columns; ++column) {
    if (column == layout.source || column == layout.target || column == layout.weight) continue;
    unused.push_back(table.has_header() ? table.header[static_cast<std::size_t>(column)]
                                        : std::to_string(column + 1));
  }
  if (unused.empty()) return;
  dataset.notes.push_back(fmt::format("nothing uses the column{} {}", unused.size() == 1 ? "" : "s",
                                      fmt::join(unused, ", ")));
}

/// A list that counts from 1 has a vertex 0 that nothing leads to or from.
void note_unused_zero(const EdgeListOptions& said, Dataset& dataset) {
  const Graph& graph = dataset.graph;
  if (said.base != 0 || graph.num_edges() == 0 || graph.degree(0) > 0) return;
  const SharedArray<VertexId>& sources = graph.col_indices();
  if (std::find(sources.begin(), sources.end(), 0) != sources.end()) return;
  dataset.notes.emplace_back(
      "no edge has vertex 0: give --base 1 if the list counts vertices from 1");
}

/// A first line whose ids are both unknown is a header, whatever its words.
bool is_header(const EdgeListLayout& layout, const NameIndex& ids) {
  if (layout.table.has_header()) return false;
  const std::vector<std::string>& first = layout.table.sample.front();
  return ids.find(first[static_cast<std::size_t>(layout.source)]) < 0 &&
         ids.find(first[static_cast<std::size_t>(layout.target)]) < 0;
}

Dataset read_with_nodes(const std::string& path, const ReadOptions& options) {
  NodeTable table = read_node_table(options);
  TextSource source(path);
  std::int64_t begin = 0;
  const std::string_view head = first_block(source, begin);
  EdgeListOptions by_name = options.edges;
  by_name.ids = IdKind::names;  // They are looked up as texts, whatever they are.
  EdgeListLayout layout = find_edge_list_layout(head, by_name, path);
  if (!options.edges.header && layout.table.sample.size() > 1 && is_header(layout, *table.ids)) {
    by_name.header = true;
    layout = find_edge_list_layout(head, by_name, path);
  }
  begin += layout.table.begin;
  const EdgeLines lines(layout, options.nonfinite);
  const NamedVertices vertices{*table.ids, options.nodes.path,
                               options.nodes.unknown == UnknownIds::drop};
  Dataset dataset = std::move(table.dataset);
  dataset.name = stem_of(path);
  std::atomic<std::int64_t> dropped = 0;
  dataset.graph = build(
      source, begin, table.ids->size(), layout.weight >= 0, dataset.edges_stored, options,
      [&](VertexId vertex) { return in_quotes(dataset.vertex_names, vertex); },
      [&](const TextChunk& chunk, bool with_values, std::vector<Entry>& out) {
        dropped += lines.parse(chunk, vertices, with_values, out);
      });
  by_name.header = options.edges.header;
  note_layout(layout, by_name, dataset);
  dropped = dropped / times_read;
  if (dropped > 0) {
    dataset.notes.push_back(fmt::format("{} dropped, as an end is not in the table of vertices",
                                        counted(dropped, "edge was", "edges were")));
  }
  note_merged_edges(dataset.edges_stored, options.duplicates, dataset);
  dataset.validate(options.nonfinite);
  return dataset;
}

}  // namespace

Dataset read_numbered_edges(const std::string& path, VertexId vertices,
                            const ReadOptions& options) {
  TextSource source(path);
  std::int64_t begin = 0;
  const std::string_view head = first_block(source, begin);
  EdgeListOptions two_columns = options.edges;
  two_columns.header = false;
  two_columns.ids = IdKind::numbers;
  two_columns.weight = "none";
  const EdgeListLayout layout = find_edge_list_layout(head, two_columns, path);
  begin += layout.table.begin;
  const EdgeLines lines(layout, options.nonfinite);
  const NumberedVertices ids{0, std::int64_t{vertices} - 1, true};
  Dataset dataset;
  dataset.name = stem_of(path);
  dataset.graph = build(
      source, begin, vertices, false, dataset.edges_stored, options,
      [](VertexId vertex) { return std::to_string(vertex); },
      [&](const TextChunk& chunk, bool with_values, std::vector<Entry>& out) {
        lines.parse(chunk, ids, with_values, out);
      });
  return dataset;
}

Dataset read_edge_list(const std::string& path, const ReadOptions& options) {
  if (!options.nodes.path.empty()) return read_with_nodes(path, options);
  TextSource source(path);
  std::int64_t begin = 0;
  const std::string_view head = first_block(source, begin);
  const EdgeListLayout layout = find_edge_list_layout(head, options.edges, path);
  if (layout.prose && options.format.empty()) {
    throw Error(ErrorCode::unsupported, "is a text of words, and nothing says that they are edges",
                path, "give --ids names where the words are ids of vertices, or --format NAME");
  }
  begin += layout.table.begin;
  const EdgeLines lines(layout, options.nonfinite);
  Dataset dataset;
  dataset.name = stem_of(path);
  const bool weighted = layout.weight >= 0;
  if (layout.names) {
    const auto index = collect_names(source, begin, lines, options.progress);
    dataset.vertex_names = index->names();
    const NamedVertices vertices{*index, path, false};
    dataset.graph = build(
        source, begin, index->size(), weighted, dataset.edges_stored, options,
        [&](VertexId vertex) { return in_quotes(dataset.vertex_names, vertex); },
        [&](const TextChunk& chunk, bool with_values, std::vector<Entry>& out) {
          lines.parse(chunk, vertices, with_values, out);
        });
  } else {
    dataset.graph = build(
        source, begin, -1, weighted, dataset.edges_stored, options,
        [&](VertexId vertex) { return std::to_string(std::int64_t{vertex} + options.edges.base); },
        [&](const TextChunk& chunk, bool with_values, std::vector<Entry>& out) {
          const NumberedVertices vertices{options.edges.base, most_vertices(chunk.text_bytes) - 1};
          lines.parse(chunk, vertices, with_values, out);
        });
  }
  note_layout(layout, options.edges, dataset);
  if (!layout.names) note_unused_zero(options.edges, dataset);
  note_merged_edges(dataset.edges_stored, options.duplicates, dataset);
  dataset.validate(options.nonfinite);
  return dataset;
}

}  // namespace tessera::io
