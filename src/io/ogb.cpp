// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/ogb.hpp"

#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/index_file.hpp"

#include "io/dataset_arrays.hpp"
#include "io/edge_arrays.hpp"
#include "io/edge_list.hpp"
#include "io/number_table.hpp"
#include "io/ogb_files.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

/// Of the files with a line per vertex or edge: what the number of vertices is measured by.
std::int64_t bytes_of_lines(const std::string& folder) {
  std::int64_t bytes = 0;
  for (const char* const name : {"edge", "node-feat", "node-label"}) {
    std::error_code ignored;
    const std::string path = find_ogb_file(folder, name);
    if (!path.empty()) bytes += static_cast<std::int64_t>(fs::file_size(path, ignored));
  }
  return bytes;
}

VertexId read_num_vertices(const std::string& folder) {
  const std::string path = find_ogb_file(folder, "num-node-list");
  if (path.empty()) {
    throw Error(ErrorCode::bad_data, "has no num-node-list.csv.gz beside its edges", folder,
                "copy the folder as it was downloaded");
  }
  const std::vector<std::int64_t> counts = read_index_file(path);
  if (counts.size() != 1) {
    throw Error(ErrorCode::unsupported,
                fmt::format("holds {} graphs instead of one", counts.size()), path,
                "convert sets of graphs with examples/python/to_npz.py");
  }
  return checked_vertex_count(counts[0], bytes_of_lines(folder), path);
}

/// A line for each line of the edges.
void read_edge_features(const std::string& folder, const std::string& edges,
                        const ReadOptions& options, Dataset& dataset) {
  const std::string path = find_ogb_file(folder, "edge-feat");
  if (path.empty()) return;
  NumberTable ends(edges, options.progress), table(path, options.progress);
  table.require_rows(ends.num_rows(), "edges");
  std::vector<VertexId> sources, targets;
  const std::vector<std::int64_t> numbers = ends.integers();
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    sources.push_back(static_cast<VertexId>(numbers[i]));
    targets.push_back(static_cast<VertexId>(numbers[i + 1]));
  }
  dataset.edge_features.matrix = table.reals();
  sort_edge_features(dataset.graph, sources, targets, options.duplicates, path,
                     dataset.edge_features);
}

/// `split/SCHEME/train.csv.gz` and its like. There is one scheme in every set.
void read_split(const std::string& folder, Dataset& dataset) {
  const fs::path split = fs::path(folder) / "split";
  std::error_code ignored;
  if (!fs::is_directory(split, ignored)) return;
  std::vector<std::string> schemes;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(split, problem)) {
    if (entry.is_directory(ignored)) schemes.push_back(entry.path().string());
  }
  if (problem) {
    throw Error(ErrorCode::io, "cannot open: " + problem.message(), split.string(),
                "check the permissions of the folder");
  }
  if (schemes.size() > 1) {
    throw Error(ErrorCode::unsupported, fmt::format("holds {} splits", schemes.size()),
                split.string(), "keep one of the folders");
  }
  for (const std::string& scheme : schemes) read_ogb_parts(scheme, dataset);
}

}  // namespace

bool is_ogb_folder(const std::string& folder) { return !find_ogb_file(folder, "edge").empty(); }

Dataset read_ogb(const std::string& folder, const ReadOptions& options) {
  const std::string edges = find_ogb_file(folder, "edge");
  if (edges.empty()) {
    throw Error(ErrorCode::bad_data, "holds no edge.csv.gz", folder,
                "give the folder of one data set, which has raw/edge.csv.gz below it");
  }
  const VertexId vertices = read_num_vertices(folder);
  Dataset dataset = read_numbered_edges(edges, vertices, options);
  dataset.name = fs::path(folder).lexically_normal().filename().string();
  if (dataset.name.empty() || dataset.name == ".") {
    dataset.name = fs::path(folder).lexically_normal().parent_path().filename().string();
  }
  read_ogb_features(folder, vertices, options, dataset);
  read_edge_features(folder, edges, options, dataset);
  read_ogb_labels(folder, vertices, options, dataset);
  return naming_file(folder, [&] {
    read_split(folder, dataset);
    dataset.validate(options.nonfinite);
    return dataset;
  });
}

}  // namespace tessera::io
