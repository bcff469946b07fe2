// SPDX-License-Identifier: Apache-2.0
#include "graph/induced_edges.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/core/parallel.hpp"

namespace tessera::detail {

std::vector<EdgeOffset> induced_edges(const Graph& graph, std::span<const VertexId> vertices) {
  const auto size = std::ssize(vertices);
  const auto vertex = [&](std::int64_t i) { return vertices[static_cast<std::size_t>(i)]; };
  Buffer<VertexId> number(graph.num_rows(), -1);
  for (std::int64_t i = 0; i < size; ++i) number[vertex(i)] = static_cast<VertexId>(i);
  const auto is_in = [&](VertexId col) { return number[col] >= 0; };
  std::vector<EdgeOffset> begins(static_cast<std::size_t>(size) + 1, 0);
  parallel_for(size, even_grain(size, 64), [&](std::int64_t i) {
    begins[static_cast<std::size_t>(i) + 1] =
        std::ranges::count_if(graph.neighbours(vertex(i)), is_in);
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<EdgeOffset> edges(static_cast<std::size_t>(begins.back()));
  parallel_ranges(size, even_grain(size, 64), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::pair<VertexId, EdgeOffset>> row;
    for (std::int64_t i = begin; i < end; ++i) {
      row.clear();
      EdgeOffset edge = graph.row_offsets()[vertex(i)];
      for (const VertexId col : graph.neighbours(vertex(i))) {
        if (is_in(col)) row.emplace_back(number[col], edge);
        ++edge;
      }
      std::ranges::sort(row);
      std::ranges::transform(row, edges.begin() + begins[static_cast<std::size_t>(i)],
                             [](const auto& entry) { return entry.second; });
    }
  });
  return edges;
}

}  // namespace tessera::detail
