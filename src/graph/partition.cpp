// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/partition.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/partition_methods.hpp"
#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera {
namespace {

void check_options(const Graph& graph, const PartitionOptions& options) {
  detail::require_square(graph, "partition");
  if (options.parts < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} parts", options.parts), "partition",
                "ask for at least one part");
  }
  if (graph.num_rows() > 0 && options.parts > graph.num_rows()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} parts of {} vertices: some would be empty", options.parts,
                            graph.num_rows()),
                "partition", "ask for at most as many parts as there are vertices");
  }
  if (!(options.imbalance >= 0) || !std::isfinite(options.imbalance)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an imbalance of {} means nothing", options.imbalance), "partition",
                "use a share such as 0.05");
  }
}

/// Vertices that a part may hold: the mean and the allowance, but never too few for all to fit.
VertexId largest_allowed(const Graph& graph, const PartitionOptions& options) {
  const std::int64_t vertices = graph.num_rows();
  const std::int64_t even = (vertices + options.parts - 1) / options.parts;
  const double mean = static_cast<double>(vertices) / options.parts;
  const double allowed =
      std::min(std::floor(mean * (1 + options.imbalance)), static_cast<double>(vertices));
  return static_cast<VertexId>(std::max(even, static_cast<std::int64_t>(allowed)));
}

struct Method {
  const char* name;
  const char* summary;
  detail::Assignment (*run)(const detail::PartitionTask& task);
};

constexpr Method all_methods[] = {
    {"multilevel", "built in: splits a coarser graph, and moves vertices on the way back",
     detail::partition_multilevel},
    {"metis", "METIS, k-way, where it was built in", detail::partition_metis},
    {"contiguous", "ranges of vertex ids", detail::partition_contiguous},
};

const Method* find_method(const std::string& name) {
  const auto found = std::find_if(std::begin(all_methods), std::end(all_methods),
                                  [&](const Method& method) { return method.name == name; });
  return found == std::end(all_methods) ? nullptr : found;
}

void check_method(const std::string& name) {
  if (name == "auto" || find_method(name) != nullptr) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown method '{}'", name), "partition",
              "use auto, multilevel, metis or contiguous");
}

}  // namespace

std::vector<CatalogueEntry> partition_methods() {
  std::vector<CatalogueEntry> entries{{"auto", "multilevel"}};
  for (const Method& method : all_methods) entries.push_back({method.name, method.summary});
  return entries;
}

Partition partition(const Graph& graph, const PartitionOptions& options) {
  check_options(graph, options);
  check_method(options.method);
  const Graph both_ways = options.method == "contiguous" ? graph : detail::undirected(graph);
  Partition result;
  result.parts = options.parts;
  result.method = options.method == "auto" ? "multilevel" : options.method;
  if (graph.num_rows() == 0) return result;
  result.assignment = find_method(result.method)
                          ->run({both_ways, options.parts, largest_allowed(graph, options),
                                 options.imbalance, options.seed, options.progress});
  return result;
}

void Partition::validate(VertexId num_vertices) const {
  if (static_cast<std::int64_t>(assignment.size()) != num_vertices) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} assignments for {} vertices", assignment.size(), num_vertices),
                "partition", "give one part per vertex");
  }
  for (std::size_t vertex = 0; vertex < assignment.size(); ++vertex) {
    if (assignment[vertex] < 0 || assignment[vertex] >= parts) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("vertex {} is in part {}, outside [0, {})", vertex,
                              assignment[vertex], parts),
                  "partition", "number parts from 0");
    }
  }
}

PartitionQuality assess(const Graph& graph, const Partition& partition) {
  detail::require_square(graph, "assessing a partition");
  partition.validate(graph.num_rows());
  const auto part_of = [&](std::int64_t vertex) {
    return partition.assignment[static_cast<std::size_t>(vertex)];
  };
  const auto count_cut = [&](std::int64_t begin, std::int64_t end) {
    EdgeOffset cut = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      for (const VertexId col : graph.neighbours(static_cast<VertexId>(row))) {
        cut += part_of(row) != part_of(col) ? 1 : 0;
      }
    }
    return cut;
  };
  PartitionQuality quality;
  quality.cut_edges = parallel_reduce(graph.num_rows(), even_grain(graph.num_rows()), EdgeOffset{0},
                                      count_cut, std::plus<>());
  if (graph.num_edges() > 0) {
    quality.cut_share =
        static_cast<double>(quality.cut_edges) / static_cast<double>(graph.num_edges());
  }
  std::vector<VertexId> sizes(static_cast<std::size_t>(partition.parts));
  for (const std::int32_t part : partition.assignment) ++sizes[static_cast<std::size_t>(part)];
  if (partition.assignment.empty()) return quality;
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
  quality.smallest = *smallest;
  quality.largest = *largest;
  quality.imbalance =
      static_cast<double>(*largest) * partition.parts / static_cast<double>(graph.num_rows()) - 1;
  return quality;
}

std::vector<std::vector<VertexId>> members(const Partition& partition) {
  std::vector<std::vector<VertexId>> lists(static_cast<std::size_t>(partition.parts));
  for (std::size_t vertex = 0; vertex < partition.assignment.size(); ++vertex) {
    lists[static_cast<std::size_t>(partition.assignment[vertex])].push_back(
        static_cast<VertexId>(vertex));
  }
  return lists;
}

}  // namespace tessera
