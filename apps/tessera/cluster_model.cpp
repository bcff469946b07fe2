// SPDX-License-Identifier: Apache-2.0
#include "cluster_model.hpp"

#include <algorithm>

namespace tessera::app {
namespace {

constexpr double giga = 1e9;
constexpr double tera = 1e12;
constexpr std::int64_t number = 4;  // bytes, of fp32 and of an id

}  // namespace

std::vector<PartLoad> loads_of(const Graph& graph, const Partition& partition) {
  std::vector<PartLoad> loads(static_cast<std::size_t>(partition.parts));
  std::vector<std::int32_t> seen_by(partition.assignment.size(), -1);
  const auto part_of = [&](VertexId vertex) {
    return partition.assignment[static_cast<std::size_t>(vertex)];
  };
  std::int32_t part = 0;
  for (const std::vector<VertexId>& rows : members(partition)) {
    PartLoad& load = loads[static_cast<std::size_t>(part)];
    load.vertices = std::ssize(rows);
    for (const VertexId row : rows) {
      const auto neighbours = graph.neighbours(row);
      bool is_inner = true;
      for (const VertexId neighbour : neighbours) {
        if (part_of(neighbour) == part) continue;
        is_inner = false;
        std::int32_t& seen = seen_by[static_cast<std::size_t>(neighbour)];
        if (seen == part) continue;
        seen = part;
        ++load.boundary;
        ++loads[static_cast<std::size_t>(part_of(neighbour))].sent;
      }
      load.edges += std::ssize(neighbours);
      if (is_inner) load.inner_edges += std::ssize(neighbours);
    }
    ++part;
  }
  return loads;
}

PartCost cost_of(const PartLoad& load, const ClusterModel& model) {
  const std::int64_t row = number * model.width;
  PartCost cost;
  cost.layer_bytes = (load.sent + load.boundary) * row;
  cost.step_bytes = model.layers * cost.layer_bytes;
  // Ids and values of edges and offsets of rows, forward and transposed; the features; and of each
  // layer what goes in, what is summed and what comes out.
  cost.memory_bytes = 4 * number * (load.edges + load.vertices) + row * load.vertices +
                      3 * model.layers * row * (load.vertices + load.boundary);
  const auto width = static_cast<double>(model.width);
  const auto edges = static_cast<double>(load.edges);
  const auto vertices = static_cast<double>(load.vertices);
  const auto row_bytes = static_cast<double>(row);
  // Both passes read a row for each edge and write one for each vertex; the product of a layer has
  // two more for its gradients.
  const double sums =
      2 * (edges * (row_bytes + 2 * number) + vertices * row_bytes) / (model.memory * giga);
  const double products = 3 * 2 * vertices * width * width / (model.operations * tera);
  const double exchange = static_cast<double>(cost.layer_bytes) / (model.link * giga);
  const double hidden = edges > 0 ? sums * static_cast<double>(load.inner_edges) / edges : 0;
  cost.seconds =
      static_cast<double>(model.layers) * (sums + products + std::max(0.0, exchange - hidden));
  return cost;
}

double gradient_seconds(std::int64_t parts, const ClusterModel& model) {
  const std::int64_t weights = model.layers * model.width * model.width;
  const double share = 2 * static_cast<double>(parts - 1) / static_cast<double>(parts);
  return share * static_cast<double>(weights * number) / (model.link * giga);
}

}  // namespace tessera::app
