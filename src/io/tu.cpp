// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/tu.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

#include "core/listing.hpp"
#include "io/array.hpp"
#include "io/dataset_arrays.hpp"
#include "io/edge_arrays.hpp"
#include "io/number_table.hpp"
#include "io/reading_notes.hpp"
#include "io/tu_features.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* edges_file = "A.txt";
constexpr const char* indicator_file = "graph_indicator.txt";

/// The names of data sets that have files in this very folder.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string file = entry.path().filename().string();
    for (const char* const ending : {edges_file, indicator_file}) {
      const std::string tail = std::string("_") + ending;
      if (file.size() > tail.size() && file.ends_with(tail)) {
        names.insert(file.substr(0, file.size() - tail.size()));
      }
    }
  }
  return names;
}

/// The files of one data set.
class TuFiles {
 public:
  explicit TuFiles(const std::string& folder) {
    for (const fs::path& place : {fs::path(folder), fs::path(folder) / "raw"}) {
      const std::set<std::string> names = names_in(place);
      if (names.empty()) continue;
      if (names.size() > 1) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("holds {} data sets: {}", names.size(),
                                listed({names.begin(), names.end()})),
                    place.string(), "put the files of each into a folder of its own");
      }
      place_ = place;
      name = *names.begin();
      return;
    }
    throw Error(ErrorCode::bad_data, "holds no NAME_A.txt and NAME_graph_indicator.txt", folder,
                "give the folder of one data set, as it was unpacked");
  }

  std::string name;

  std::string path_of(const std::string& part) const {
    return (place_ / (name + "_" + part)).string();
  }
  bool has(const std::string& part) const {
    std::error_code ignored;
    return fs::exists(path_of(part), ignored);
  }
  /// Empty where there is no such file.
  std::string path_if(const std::string& part) const { return has(part) ? path_of(part) : ""; }
  void require(const char* part) const {
    if (has(part)) return;
    throw Error(ErrorCode::bad_data, fmt::format("has no {}_{} beside its other files", name, part),
                place_.string(), "copy all files of the data set into the folder");
  }

 private:
  fs::path place_;
};

void require_columns(const NumberTable& table, std::int64_t columns, const char* items) {
  if (table.num_rows() == 0 || table.num_columns() == columns) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("has {} on a line", counted(table.num_columns(), "number", "numbers")),
              table.path(), fmt::format("give {}", items));
}

/// The graph of each vertex, from 0. Graphs are numbered from 1 on in the order of their vertices.
std::vector<std::int32_t> read_indicator(const std::string& path, const ReadOptions& options) {
  NumberTable table(path, options.progress);
  require_columns(table, 1, "the number of the graph of one vertex on each line");
  if (table.num_rows() == 0) damaged(path, "has no vertices");
  if (table.num_rows() > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::unsupported, "has more lines than a graph has vertices", path,
                "use at most 2^31 - 1");
  }
  const std::vector<std::int64_t> numbers = table.integers();
  std::vector<std::int32_t> graphs;
  graphs.reserve(numbers.size());
  std::int64_t last = 0;
  for (const std::int64_t number : numbers) {
    if (number != last && number != last + 1) {
      const std::int64_t row = std::ssize(graphs);
      table.reject(row,
                   last == 0
                       ? fmt::format("the first vertex is in graph {}, not in graph 1", number)
                       : fmt::format("vertex {} is in graph {}, the one before it in graph {}",
                                     row + 1, number, last),
                   "number graphs from 1 on without a gap, and list their vertices one graph after "
                   "the other");
    }
    last = number;
    graphs.push_back(static_cast<std::int32_t>(number - 1));
  }
  return graphs;
}

/// The edges as they are listed.
class TuEdges {
 public:
  TuEdges(const TuFiles& files, std::span<const std::int32_t> graphs, const ReadOptions& options)
      : table_(files.path_of(edges_file), options.progress), graphs_(graphs), options_(options) {
    require_columns(table_, 2, "the source and the target of one edge on each line");
    const std::vector<std::int64_t> ends = table_.integers();
    for (std::int64_t edge = 0; edge < size(); ++edge) {
      const auto place = 2 * static_cast<std::size_t>(edge);
      check(edge, ends[place], ends[place + 1]);
      sources_.push_back(static_cast<VertexId>(ends[place] - 1));
      targets_.push_back(static_cast<VertexId>(ends[place + 1] - 1));
    }
  }

  std::int64_t size() const noexcept { return table_.num_rows(); }

  /// The graph, which knows where each line has got to.
  Graph build() {
    BuildOptions build;
    build.duplicates = options_.duplicates;
    build.keep_edge_ids = true;
    build.progress = options_.progress;
    const bool rejects = build.duplicates == Duplicates::reject;
    if (rejects) build.duplicates = Duplicates::first;
    Graph graph = from_edges(static_cast<VertexId>(graphs_.size()), sources_, targets_, {}, build);
    if (rejects && graph.num_edges() < size()) reject_repeated(graph);
    return graph;
  }

 private:
  void check(std::int64_t edge, std::int64_t source, std::int64_t target) {
    const auto vertices = std::ssize(graphs_);
    for (const std::int64_t end : {source, target}) {
      if (end >= 1 && end <= vertices) continue;
      table_.reject(edge,
                    fmt::format("vertex {} is none of the {} of {}", end, vertices, indicator_file),
                    "count vertices from 1, and list all of them in the graph indicator");
    }
    const std::int32_t from = graphs_[static_cast<std::size_t>(source - 1)];
    const std::int32_t to = graphs_[static_cast<std::size_t>(target - 1)];
    if (from == to) return;
    table_.reject(edge,
                  fmt::format("the edge leads from vertex {} of graph {} to vertex {} of graph {}",
                              source, from + 1, target, to + 1),
                  "give vertices that edges connect the same graph");
  }

  [[noreturn]] void reject_repeated(const Graph& graph) {
    const SharedArray<EdgeOffset>& places = graph.edge_ids();
    const std::int64_t edge = std::find(places.begin(), places.end(), -1) - places.begin();
    const auto k = static_cast<std::size_t>(edge);
    table_.reject(edge,
                  fmt::format("the edge from vertex {} to vertex {} occurs more than once",
                              sources_[k] + 1, targets_[k] + 1),
                  "merge duplicates with 'sum' or 'first' (--duplicates)");
  }

  NumberTable table_;
  std::span<const std::int32_t> graphs_;
  const ReadOptions& options_;
  std::vector<VertexId> sources_, targets_;
};

/// Classes from 0 on in the order of the labels, which are their names where they are others.
void read_graph_labels(const std::string& path, std::int64_t graphs, const ReadOptions& options,
                       Dataset& dataset) {
  NumberTable table(path, options.progress);
  table.require_rows(graphs, "graphs");
  require_columns(table, 1, "the class of one graph on each line");
  const std::vector<std::int64_t> labels = table.integers();
  const std::set<std::int64_t> different(labels.begin(), labels.end());
  const std::vector<std::int64_t> classes(different.begin(), different.end());
  std::vector<std::int64_t> numbers;
  for (const std::int64_t label : labels) {
    numbers.push_back(std::lower_bound(classes.begin(), classes.end(), label) - classes.begin());
  }
  dataset.graph_labels = std::move(numbers);
  if (classes.front() == 0 && classes.back() == std::ssize(classes) - 1) return;
  std::vector<std::string> names;
  for (const std::int64_t label : classes) names.push_back(fmt::to_string(label));
  dataset.class_names = Names(names);
}

/// Numbers that are to be predicted of the graphs, as those of molecules are.
void read_graph_targets(const std::string& path, std::int64_t graphs, const ReadOptions& options,
                        Dataset& dataset) {
  NumberTable table(path, options.progress);
  table.require_rows(graphs, "graphs");
  dataset.graph_targets.matrix = table.reals();
}

void add_vertex_features(const TuFiles& files, std::int64_t vertices, const ReadOptions& options,
                         Dataset& dataset) {
  TuFeatures features = read_tu_features(
      {files.path_if("node_attributes.txt"), files.path_if("node_labels.txt"), true}, vertices,
      "vertices", options);
  dataset.features = std::move(features.matrix);
  dataset.feature_names = std::move(features.names);
  dataset.category_prefixes = std::move(features.category_prefixes);
  if (!features.note.empty()) dataset.notes.push_back(std::move(features.note));
}

/// In the order of the file.
void add_edge_features(const TuFiles& files, std::int64_t edges, const ReadOptions& options,
                       Dataset& dataset) {
  TuFeatures features =
      read_tu_features({files.path_if("edge_attributes.txt"), files.path_if("edge_labels.txt")},
                       edges, "edges", options);
  if (const auto* matrix = std::get_if<DenseFeatures>(&features.matrix)) {
    dataset.edge_features = {*matrix, std::move(features.names),
                             std::move(features.category_prefixes)};
    dataset.notes.push_back(std::move(features.note));
  }
}

}  // namespace

bool is_tu_folder(const std::string& folder) {
  return !names_in(folder).empty() || !names_in(fs::path(folder) / "raw").empty();
}

Dataset read_tu(const std::string& folder, const ReadOptions& options) {
  const TuFiles files(folder);
  files.require(edges_file);
  files.require(indicator_file);
  Dataset dataset;
  dataset.name = files.name;
  std::vector<std::int32_t> graph_ids = read_indicator(files.path_of(indicator_file), options);
  const std::int64_t vertices = std::ssize(graph_ids), graphs = graph_ids.back() + 1;
  TuEdges edges(files, graph_ids, options);
  dataset.edges_stored = edges.size();
  dataset.graph = edges.build();
  add_edge_features(files, edges.size(), options, dataset);
  sort_arrays_of_edges(dataset.graph, edges.size(), options.duplicates, files.path_of(edges_file),
                       dataset);
  dataset.graph = dataset.graph.with_edge_ids({});
  dataset.graph_ids = std::move(graph_ids);
  add_vertex_features(files, vertices, options, dataset);
  if (files.has("graph_labels.txt")) {
    read_graph_labels(files.path_of("graph_labels.txt"), graphs, options, dataset);
  }
  if (files.has("graph_attributes.txt")) {
    read_graph_targets(files.path_of("graph_attributes.txt"), graphs, options, dataset);
  }
  note_merged_edges(dataset.edges_stored, options.duplicates, dataset);
  return naming_file(folder, [&] {
    dataset.validate(options.nonfinite);
    return dataset;
  });
}

}  // namespace tessera::io
