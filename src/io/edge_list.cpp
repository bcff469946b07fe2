// SPDX-License-Identifier: Apache-2.0
#include "io/edge_list.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"
#include "io/dataset_arrays.hpp"
#include "io/edge_columns.hpp"
#include "io/edge_lines.hpp"
#include "io/interactions.hpp"
#include "io/node_table.hpp"
#include "io/reading_notes.hpp"
#include "io/useless_options.hpp"

namespace tessera::io {
namespace {

/// An edge list whose first block has been looked at.
struct EdgeList {
  TextSource source;
  TextBlock head;
  EdgeListLayout layout;
  std::vector<std::int64_t> features;  ///< columns of features
  std::int64_t begin = 0;              ///< of the first edge

  EdgeList(const std::string& path, const EdgeListOptions& options) : source(path) {
    const auto block = source.next();
    if (!block) damaged(path, "is empty");
    head = *block;
    find_layout(options);
  }
  void find_layout(const EdgeListOptions& options) {
    layout = find_edge_list_layout(head.text, options, source.path());
    features = edge_feature_columns(layout, options.features, source.path());
    begin = head.offset + layout.table.begin;
  }
};

std::unique_ptr<NameIndex> collect_names(EdgeList& list, const ReadOptions& options) {
  auto names = std::make_unique<NameIndex>();
  const EdgeLines lines(list.layout, options.nonfinite);
  for_each_chunk(list.source, list.begin, "reading ids", options.progress,
                 [&](std::int64_t, const TextChunk& chunk) { lines.collect(chunk, *names); });
  names->number_all();
  return names;
}

std::string in_quotes(const Names& names, VertexId vertex) {
  return fmt::format("'{}'", names[vertex].substr(0, 40));
}

/// Reads the edges into a data set of `num_vertices`, or of as many as the highest says where that
/// is -1. `vertices_of(chunk)` reads ids, and `name` says what the text calls a vertex. Returns how
/// many edges were dropped.
template <class VerticesOf, class Name>
std::int64_t read_edges(EdgeList& list, std::int64_t num_vertices, VerticesOf&& vertices_of,
                        Name&& name, const ReadOptions& options, Dataset& dataset) {
  const EdgeLines lines(list.layout, options.nonfinite);
  std::atomic<std::int64_t> dropped = 0;
  const auto parse = [&](const TextChunk& chunk, bool with_values, std::vector<Entry>& out) {
    dropped += lines.parse(chunk, vertices_of(chunk), with_values, out);
  };
  const auto keep_count = [&](std::int64_t count) { dataset.edges_stored = count; };
  dataset.name = stem_of(list.source.path());
  dataset.graph = build_from_text(list.source,
                                  {list.begin, num_vertices, num_vertices, list.layout.weight >= 0,
                                   0, "target", "source", name, parse, keep_count},
                                  options);
  return dropped / times_read;
}

/// What was found out about the text, of which `listed` lines are edges.
std::string note_on(const EdgeList& list, std::int64_t listed_edges, bool with_table) {
  const EdgeListLayout& layout = list.layout;
  const TableLayout& table = layout.table;
  std::string text =
      fmt::format("{} in {}, {}, from {} to {}", counted(listed_edges, "edge", "edges"),
                  file_name(list.source.path()), table.form(), table.named(layout.source),
                  table.named(layout.target));
  if (layout.weight >= 0) text += ", weighted by " + table.named(layout.weight);
  if (!with_table) {
    text += layout.names ? "; ids are names" : "; ids are numbers of vertices";
    if (!layout.first_name.empty()) {
      text += fmt::format(", as {} is no whole number", tessera::in_quotes(layout.first_name));
    }
  }
  std::vector<std::string> unused;
  for (std::int64_t column = 0; column < table.columns; ++column) {
    if (column == layout.source || column == layout.target || column == layout.weight) continue;
    const bool is_feature =
        std::find(list.features.begin(), list.features.end(), column) != list.features.end();
    if (!is_feature) unused.push_back(table.named(column));
  }
  if (!unused.empty()) text += "; nothing uses " + listed(unused);
  return note_about(about::edge_list, text);
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

void require_two_files(const std::string& path, const std::string& nodes) {
  std::error_code unknown;
  if (!std::filesystem::equivalent(path, nodes, unknown)) return;
  throw Error(ErrorCode::invalid_argument, "is given as the edges and as the table of vertices",
              path, "name the file of the edges first, and the table of their ends with --nodes");
}

Dataset read_with_nodes(const std::string& path, const ReadOptions& options) {
  require_two_files(path, options.nodes.path);
  reject_numbering(options.edges);
  NodeTable table = read_node_table(options);
  EdgeListOptions by_name = options.edges;
  by_name.ids = IdKind::names;  // They are looked up as texts, whatever they are.
  EdgeList list(path, by_name);
  if (!options.edges.header && list.layout.table.sample.size() > 1 &&
      is_header(list.layout, *table.ids)) {
    by_name.header = true;
    list.find_layout(by_name);
  }
  const NamedVertices vertices{*table.ids, options.nodes.path,
                               options.nodes.unknown == UnknownIds::drop};
  Dataset dataset = std::move(table.dataset);
  const std::int64_t dropped = read_edges(
      list, table.ids->size(), [&](const TextChunk&) { return vertices; },
      [&](VertexId vertex) { return in_quotes(dataset.vertex_names, vertex); }, options, dataset);
  add_edge_features(
      path, list.layout, list.features, [&](std::string_view id) { return table.ids->find(id); },
      options, dataset);
  // Edges come first, whatever is read first.
  dataset.notes.insert(dataset.notes.begin(), note_on(list, dataset.edges_stored + dropped, true));
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
  EdgeListOptions two_columns = options.edges;
  two_columns.header = false;
  two_columns.ids = IdKind::numbers;
  two_columns.weight = "none";
  EdgeList list(path, two_columns);
  Dataset dataset;
  read_edges(
      list, vertices,
      [&](const TextChunk&) {
        return NumberedVertices{0, std::int64_t{vertices} - 1, true};
      },
      [](VertexId vertex) { return std::to_string(vertex); }, options, dataset);
  return dataset;
}

Dataset read_edge_list(const std::string& path, const ReadOptions& options) {
  if (options.edges.kinds.given()) return read_interactions(path, options);
  if (!options.nodes.path.empty()) return read_with_nodes(path, options);
  EdgeList list(path, options.edges);
  if (list.layout.prose && options.format.empty()) {
    throw Error(ErrorCode::unsupported, "is a text of words, and nothing says that they are edges",
                path, "give --ids names where the words are ids of vertices, or --format NAME");
  }
  Dataset dataset;
  if (list.layout.names) {
    const auto index = collect_names(list, options);
    dataset.vertex_names = index->names();
    read_edges(
        list, index->size(),
        [&](const TextChunk&) {
          return NamedVertices{*index, path, false};
        },
        [&](VertexId vertex) { return in_quotes(dataset.vertex_names, vertex); }, options, dataset);
    add_edge_features(
        path, list.layout, list.features, [&](std::string_view id) { return index->find(id); },
        options, dataset);
  } else {
    const int base = options.edges.base;
    read_edges(
        list, -1,
        [&](const TextChunk& chunk) {
          return NumberedVertices{base, most_vertices(chunk.text_bytes) - 1};
        },
        [&](VertexId vertex) { return std::to_string(std::int64_t{vertex} + base); }, options,
        dataset);
    add_edge_features(
        path, list.layout, list.features,
        [&](std::string_view id) {
          std::int64_t number = -1;
          scan_integer(id.data(), id.data() + id.size(), number);
          return static_cast<VertexId>(number - base);
        },
        options, dataset);
  }
  dataset.notes.push_back(note_on(list, dataset.edges_stored, false));
  if (!list.layout.names) note_unused_zero(options.edges, dataset);
  note_merged_edges(dataset.edges_stored, options.duplicates, dataset);
  dataset.validate(options.nonfinite);
  return dataset;
}

}  // namespace tessera::io
