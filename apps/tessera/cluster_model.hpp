// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/graph/partition.hpp"

namespace tessera::app {

/// What a graph in parts, each on a GPU of its own, is trained with: the width of all layers, and
/// what a GPU and its connection do in a second.
struct ClusterModel {
  std::int64_t width = 256;
  std::int64_t layers = 3;
  double link = 25;        ///< GB/s that a GPU sends to others
  double memory = 3000;    ///< GB/s that a GPU reads and writes
  double operations = 40;  ///< TFLOP/s of its dense products
};

/// What one part holds, and what it has to do with others.
struct PartLoad {
  std::int64_t vertices = 0;
  std::int64_t edges = 0;        ///< to its vertices
  std::int64_t inner_edges = 0;  ///< of rows whose neighbours all lie in the part
  std::int64_t boundary = 0;     ///< vertices of other parts that its edges begin at
  std::int64_t sent = 0;         ///< its vertices, once for each other part with edges from them
};

struct PartCost {
  std::int64_t layer_bytes = 0;  ///< sent for a layer, rows there and gradients back
  std::int64_t step_bytes = 0;   ///< for all layers
  std::int64_t memory_bytes = 0;
  double seconds = 0;  ///< of a step
};

std::vector<PartLoad> loads_of(const Graph& graph, const Partition& partition);

PartCost cost_of(const PartLoad& load, const ClusterModel& model);

/// Of adding the gradients of the weights up over so many parts.
double gradient_seconds(std::int64_t parts, const ClusterModel& model);

}  // namespace tessera::app
