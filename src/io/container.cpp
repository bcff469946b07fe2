// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/container.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/member_name.hpp"
#include "io/sections.hpp"

namespace tessera::io {
namespace {

/// Sections of arrays Tessera has no use for carry this before their name, so that they never meet
/// a name with a meaning.
constexpr std::string_view extra_prefix = "extra:";

/// What the container holds besides the arrays that all formats share.
struct OwnParts {
  SharedArray<EdgeOffset> row_offsets;
  SharedArray<VertexId> col_indices;
  std::int64_t num_cols = -1;
  std::int64_t edges_stored = -1;
  std::string name;
};

struct OwnKind {
  std::string_view name;
  void (*take)(OwnParts&, ArrayReader&);
  ExtraArray (*give)(const Dataset&);
};

const OwnKind own_kinds[] = {
    {"name", [](OwnParts& p, ArrayReader& a) { p.name = read_text(a); },
     [](const Dataset& d) { return stored_text(d.name); }},
    {"edges_stored", [](OwnParts& p, ArrayReader& a) { p.edges_stored = read_integer(a); },
     [](const Dataset& d) { return stored(d.edges_stored); }},
    {"num_cols", [](OwnParts& p, ArrayReader& a) { p.num_cols = read_integer(a); },
     [](const Dataset& d) { return stored(std::int64_t{d.graph.num_cols()}); }},
    {"row_offsets", [](OwnParts& p, ArrayReader& a) { p.row_offsets = read_vector<EdgeOffset>(a); },
     [](const Dataset& d) { return stored(d.graph.row_offsets()); }},
    {"col_indices", [](OwnParts& p, ArrayReader& a) { p.col_indices = read_vector<VertexId>(a); },
     [](const Dataset& d) { return stored(d.graph.col_indices()); }},
};

void take_section(const Section& section, ArrayReader& array, OwnParts& own, DatasetParts& parts) {
  const auto* const kind = std::find_if(std::begin(own_kinds), std::end(own_kinds),
                                        [&](const OwnKind& k) { return k.name == section.name; });
  if (kind != std::end(own_kinds)) {
    kind->take(own, array);
  } else if (is_dataset_array(section.name)) {
    take_dataset_array(parts, array);
  } else if (section.name.starts_with(extra_prefix)) {
    const std::string name = section.name.substr(extra_prefix.size());
    require_plain_name(name, array.where(), ErrorCode::bad_data);
    take_other(parts, name, array);
  } else if (section.name == checkpoint_section) {
    throw Error(ErrorCode::bad_data, "is a checkpoint of a training run, not a data set",
                array.where(), "name the data, and give this file as --checkpoint");
  } else if (section.name == triple_model_section || section.name == relational_model_section) {
    throw Error(ErrorCode::bad_data, "is a trained model of relations, not a data set",
                array.where(), "name the folder of the data, and give this file as --checkpoint");
  } else if (section.name == bit_tensor_section) {
    throw Error(ErrorCode::bad_data, "is a bit tensor, not a data set", array.where(),
                "name the data it was made of");
  } else {
    throw Error(ErrorCode::unsupported, "is not known to this program", array.where(),
                "use a newer tessera");
  }
}

Graph build_graph(const OwnParts& own, const SharedArray<float>& values, const InputFile& file) {
  if (own.num_cols < 0 || own.row_offsets.empty()) {
    damaged(file.path(), "holds no graph");
  }
  const VertexId rows = checked_vertex_count(own.row_offsets.size() - 1, file.size(),
                                             file.path() + ": section 'row_offsets'");
  const VertexId cols =
      checked_vertex_count(own.num_cols, file.size(), file.path() + ": section 'num_cols'");
  return {rows, cols, own.row_offsets, own.col_indices, values};
}

/// Whether a row lists a column again. Rows that are damaged are found later.
bool repeats_edges(const Graph& graph) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    const EdgeOffset begin = graph.row_offsets()[row], end = graph.row_offsets()[row + 1];
    if (begin < 0 || end > graph.num_edges() || begin > end) return false;
    const auto columns = graph.neighbours(row);
    if (std::adjacent_find(columns.begin(), columns.end()) != columns.end()) return true;
  }
  return false;
}

std::vector<NamedArray> all_arrays(const Dataset& dataset) {
  std::vector<NamedArray> arrays;
  auto shared = arrays_to_write(dataset);
  for (const OwnKind& kind : own_kinds) arrays.emplace_back(kind.name, kind.give(dataset));
  std::move(shared.begin(), shared.end(), std::back_inserter(arrays));
  for (auto& [name, array] : extras_to_write(dataset)) {
    require_plain_name(name, "extra array", ErrorCode::invalid_argument);
    arrays.emplace_back(std::string(extra_prefix) + name, std::move(array));
  }
  return arrays;
}

}  // namespace

Dataset read_container(const std::string& path, const ReadOptions& options) {
  const InputFile file(path);
  const std::vector<Section> sections = read_container_header(file);
  const SharedArray<std::byte> mapped = options.map ? file.map() : SharedArray<std::byte>();
  OwnParts own;
  DatasetParts parts;
  parts.file_bytes = file.size();
  for (const Section& section : sections) {
    report(options.progress, "reading", section.offset, file.size());
    SectionReader array(file, section, mapped);
    take_section(section, array, own, parts);
  }
  Graph graph = build_graph(own, parts.values, file);
  // Edges stay apart for their features alone.
  const bool may_repeat = parts.dataset.edge_features.matrix != nullptr;
  if (may_repeat && repeats_edges(graph)) graph = graph.with_repeated_edges();
  parts.dataset.name = std::move(own.name);
  parts.dataset.edges_stored = own.edges_stored;
  return assemble(std::move(parts), std::move(graph), path, options);
}

void write_container(const Dataset& dataset, const std::string& path, const Progress& progress) {
  write_sections(path, all_arrays(dataset), progress);
}

}  // namespace tessera::io
