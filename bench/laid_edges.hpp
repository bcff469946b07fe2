// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::bench {

/// Edges in an order that belongs to the seed, on the device.
struct LaidEdges {
  LaidEdges(const Graph& graph, std::uint64_t seed, Device device) {
    const EdgeOffset count = graph.num_edges();
    std::vector<EdgeOffset> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), EdgeOffset{0});
    const Random random(seed);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.below(i, i)]);
    std::vector<VertexId> row_of(order.size());
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      std::fill(row_of.begin() + graph.row_offsets()[row],
                row_of.begin() + graph.row_offsets()[row + 1], row);
    }
    std::vector<VertexId> from, to;
    for (const EdgeOffset edge : order) {
      from.push_back(graph.col_indices()[edge]);
      to.push_back(row_of[static_cast<std::size_t>(edge)]);
    }
    sources = laid(from, device);
    targets = laid(to, device);
    synchronise(device);
  }

  static Buffer<VertexId> laid(const std::vector<VertexId>& values, Device device) {
    Buffer<VertexId> there(std::ssize(values), default_memory(device));
    copy_bytes(there.data(), values.data(), values.size() * sizeof(VertexId), device);
    return there;
  }

  Buffer<VertexId> sources, targets;
};

}  // namespace tessera::bench
