// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/npz.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"

#include "io/dataset_arrays.hpp"
#include "io/edge_arrays.hpp"
#include "io/npy.hpp"
#include "io/npz_arrays.hpp"
#include "io/npz_edges.hpp"
#include "io/reading_notes.hpp"

namespace tessera::io {
namespace {

const EdgeKind* find_kind(std::span<const EdgeKind> kinds, std::string_view name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const EdgeKind& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

[[noreturn]] void incomplete(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::bad_data, problem, path,
              "a graph needs row, col and num_nodes (docs/formats.md)");
}

struct OpenNpz {
  InputFile file;
  std::vector<ZipEntry> entries;

  explicit OpenNpz(const std::string& path) : file(path), entries(read_zip_directory(file)) {}

  bool has(const std::string& array) const {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const ZipEntry& entry) { return entry.name == array + ".npy"; });
  }
  std::int64_t unpacked_bytes() const {
    std::int64_t sum = 0;
    for (const ZipEntry& entry : entries) {
      sum += std::min(entry.size, std::numeric_limits<std::int64_t>::max() - sum);
    }
    return sum;
  }
};

/// Reads every array. Large ones are handed out first, so that no thread is left with one alone.
void read_arrays(const OpenNpz& npz, EdgeArrays& edges, DatasetParts& parts,
                 const Progress& progress) {
  const std::span<const EdgeKind> kinds =
      edge_kinds([&](const char* name) { return npz.has(name); }, npz.file.path());
  std::vector<const ZipEntry*> by_size;
  for (const ZipEntry& entry : npz.entries) by_size.push_back(&entry);
  std::stable_sort(by_size.begin(), by_size.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return std::pair(a->size, a->packed_size) > std::pair(b->size, b->packed_size);
  });
  // First, since the error of the first task is the one that is reported: matrices of a kind that
  // is not read have arrays of other shapes, too.
  std::stable_partition(by_size.begin(), by_size.end(),
                        [](const ZipEntry* entry) { return entry->name == "format.npy"; });
  report(progress, "unpacking");
  parallel_tasks(std::ssize(by_size), [&](std::int64_t i) {
    NpyReader array(npz.file, *by_size[static_cast<std::size_t>(i)]);
    if (const EdgeKind* kind = find_kind(kinds, array.name())) {
      kind->take(edges, array);
    } else if (is_dataset_array(array.name())) {
      take_dataset_array(parts, array);
    } else {
      take_other(parts, array.name(), array);
    }
  });
}

/// How many vertices have features or labels; 0 where there are neither.
std::int64_t vertices_with_data(const DatasetParts& parts) {
  if (const auto* dense = std::get_if<DenseFeatures>(&parts.dataset.features)) {
    return (*dense)->rows();
  }
  if (!parts.feature_offsets.empty()) return parts.feature_offsets.size() - 1;
  if (const auto* several = std::get_if<MultiLabels>(&parts.dataset.labels)) {
    return (*several)->rows();
  }
  if (!parts.dataset.targets.empty()) return parts.dataset.targets.matrix->rows();
  const auto* labels = std::get_if<ClassLabels>(&parts.dataset.labels);
  return labels == nullptr ? 0 : labels->size();
}

Graph build_graph(const EdgeArrays& edges, const SharedArray<float>& values, const OpenNpz& npz,
                  bool keep_edge_ids, const ReadOptions& options) {
  const std::string& path = npz.file.path();
  const std::int64_t claimed_rows = edges.num_rows >= 0 ? edges.num_rows : edges.num_nodes;
  const std::int64_t claimed_cols = edges.num_cols >= 0 ? edges.num_cols : edges.num_nodes;
  if (claimed_rows < 0 || claimed_cols < 0) incomplete(path, "does not say how many vertices");
  if (edges.num_nodes >= 0 &&
      (claimed_rows != edges.num_nodes || claimed_cols != edges.num_nodes)) {
    throw Error(ErrorCode::bad_data,
                fmt::format("has {} vertices by 'num_nodes', but {} rows and {} columns",
                            edges.num_nodes, claimed_rows, claimed_cols),
                path, "keep num_nodes, or num_rows and num_cols");
  }
  const std::int64_t bytes = npz.unpacked_bytes();
  const VertexId rows = checked_vertex_count(claimed_rows, bytes, path + ": 'num_nodes.npy'");
  const VertexId cols = checked_vertex_count(claimed_cols, bytes, path + ": 'num_nodes.npy'");
  if (edges.row.size() != edges.col.size() || edges.src_li.size() != edges.dst_li.size()) {
    damaged(path, "the two ends of the edges differ in number");
  }
  const EdgeOffset count = edges.row.size() + edges.src_li.size();
  if (!values.empty() && values.size() != count) {
    damaged(path + ": 'value.npy'", fmt::format("{} values for {} edges", values.size(), count));
  }
  BuildOptions build{options.duplicates, keep_edge_ids, options.progress};
  build.nonfinite = options.nonfinite;
  return naming_file(path, [&] {
    if (!edges.src_li.empty()) return from_edges(rows, edges.src_li, edges.dst_li, values, build);
    return from_coo(rows, cols, edges.row, edges.col, values, build);
  });
}

std::vector<std::pair<std::string, ExtraArray>> edge_arrays(const Graph& graph) {
  std::vector<std::pair<std::string, ExtraArray>> arrays;
  arrays.emplace_back("row", stored(row_of_every_entry(graph.row_offsets())));
  arrays.emplace_back("col", stored(graph.col_indices()));
  if (graph.is_square()) {
    arrays.emplace_back("num_nodes", stored(std::int64_t{graph.num_rows()}));
  } else {
    arrays.emplace_back("num_rows", stored(std::int64_t{graph.num_rows()}));
    arrays.emplace_back("num_cols", stored(std::int64_t{graph.num_cols()}));
  }
  return arrays;
}

void require_free_name(const std::string& name) {
  if (is_dataset_array(name) || is_own_edge_array(name)) {
    throw Error(ErrorCode::invalid_argument, "an extra array has a name with a meaning of its own",
                "'" + name + "'", "rename the extra array");
  }
}

}  // namespace

Dataset read_npz(const std::string& path, const ReadOptions& options) {
  const OpenNpz npz(path);
  DatasetParts parts;
  parts.file_bytes = npz.unpacked_bytes();
  EdgeArrays edges;
  read_arrays(npz, edges, parts, options.progress);
  parts.dataset.name = stem_of(path);
  settle(edges, vertices_with_data(parts), path);
  if (!parts.values.empty() && !edges.weights.empty()) {
    throw Error(ErrorCode::bad_data, "holds weights twice", path,
                "keep one of 'value' and 'edge_weight' (SciPy's 'data')");
  }
  if (parts.values.empty()) parts.values = edges.weights;
  const EdgeOffset listed = std::max(edges.row.size(), edges.src_li.size());
  parts.dataset.edges_stored = listed;
  const bool sorts = has_arrays_of_edges(parts.dataset, listed);
  Graph graph = build_graph(edges, parts.values, npz, sorts, options);
  edges = {};
  if (sorts) {
    sort_arrays_of_edges(graph, listed, options.duplicates, path + ": 'edge_attr.npy'",
                         parts.dataset);
    graph = graph.with_edge_ids({});
  }
  Dataset dataset = assemble(std::move(parts), std::move(graph), path, options);
  note_merged_edges(listed, options.duplicates, dataset);
  return dataset;
}

void write_npz(const Dataset& dataset, const std::string& path, const Progress& progress) {
  auto arrays = arrays_to_write(dataset);
  for (auto& array : extras_to_write(dataset)) {
    require_free_name(array.first);
    arrays.push_back(std::move(array));
  }
  auto edges = edge_arrays(dataset.graph);
  arrays.insert(arrays.begin(), std::make_move_iterator(edges.begin()),
                std::make_move_iterator(edges.end()));
  write_npz_arrays(path, arrays, progress);
}

void write_npz_arrays(const std::string& path, const std::vector<NamedArray>& arrays,
                      const Progress& progress) {
  AtomicFile file(path);
  ZipWriter zip(file);
  for (std::int64_t i = 0; i < std::ssize(arrays); ++i) {
    report(progress, "packing", i, std::ssize(arrays));
    const auto& [name, array] = arrays[static_cast<std::size_t>(i)];
    const std::string header = npy_header(array.type, array.shape);
    const std::span<const std::byte> contents[] = {bytes_of(header), array.bytes.span()};
    zip.add(name + ".npy", contents);
  }
  zip.finish();
  file.commit();
}

}  // namespace tessera::io
