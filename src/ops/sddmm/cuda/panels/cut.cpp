// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/panels/cut.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::ops {
namespace {

/// Calls body(first row, end row, edges) for each panel that has edges.
template <class Body>
void for_panels(const Graph& graph, int rows, Body&& body) {
  const auto& offsets = graph.row_offsets();
  for (std::int64_t first = 0; first < graph.num_rows(); first += rows) {
    const std::int64_t end = std::min<std::int64_t>(first + rows, graph.num_rows());
    const EdgeOffset edges = offsets[end] - offsets[first];
    if (edges > 0) body(static_cast<VertexId>(first), static_cast<VertexId>(end), edges);
  }
}

EdgeOffset num_parts(EdgeOffset edges, EdgeOffset most) { return (edges + most - 1) / most; }

std::int64_t num_pieces(const Graph& graph, int rows, EdgeOffset most_edges) {
  std::int64_t pieces = 0;
  for_panels(graph, rows,
             [&](VertexId, VertexId, EdgeOffset edges) { pieces += num_parts(edges, most_edges); });
  return pieces;
}

/// The least that pieces may have at most, for no more than so many of them.
EdgeOffset least_most_edges(const Graph& graph, int rows, std::int64_t most_pieces) {
  EdgeOffset low = 1, high = std::max<EdgeOffset>(1, longest_panel(graph, rows));
  while (low < high) {
    const EdgeOffset middle = (low + high) / 2;
    if (num_pieces(graph, rows, middle) <= most_pieces) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

EdgeOffset longest_panel(const Graph& graph, int rows) {
  EdgeOffset longest = 0;
  for_panels(graph, rows,
             [&](VertexId, VertexId, EdgeOffset edges) { longest = std::max(longest, edges); });
  return longest;
}

std::int64_t wanted_pieces(const Graph& graph, int rows, const DeviceTraits& traits) {
  constexpr double piece_edges = 4096;
  // Panels that fill rounds nearly leave no room to cut those of hubs.
  constexpr double room = 0.75;
  const double blocks = traits.processors * panel_blocks;
  const double panels = std::ceil(static_cast<double>(graph.num_rows()) / rows);
  const double rounds =
      std::max(std::round(static_cast<double>(graph.num_edges()) / blocks / piece_edges),
               std::ceil(panels / (room * blocks)));
  return static_cast<std::int64_t>(std::max(1.0, rounds) * blocks);
}

std::vector<PanelPiece> cut_panels(const Graph& graph, int rows, std::int64_t most_pieces) {
  const EdgeOffset most_edges = least_most_edges(graph, rows, most_pieces);
  std::vector<PanelPiece> pieces;
  for_panels(graph, rows, [&](VertexId first, VertexId end, EdgeOffset edges) {
    const EdgeOffset begin = graph.row_offsets()[first];
    const EdgeOffset parts = num_parts(edges, most_edges);
    for (EdgeOffset part = 0; part < parts; ++part) {
      const EdgeOffset from = edges * part / parts, to = edges * (part + 1) / parts;
      pieces.push_back(
          {begin + from, begin, static_cast<std::int32_t>(to - from), first, end - first});
    }
  });
  std::stable_sort(pieces.begin(), pieces.end(), [](const PanelPiece& a, const PanelPiece& b) {
    return a.num_edges > b.num_edges;
  });
  return pieces;
}

}  // namespace tessera::ops
