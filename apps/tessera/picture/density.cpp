// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>

#include "picture/graph_picture.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::app::picture {
namespace {

constexpr std::int64_t most_cells = 512;

/// The first vertex of a cell; that of the cell after the last is the number of vertices.
VertexId first_of(std::int64_t cell, std::int64_t cells, std::int64_t vertices) {
  return static_cast<VertexId>((cell * vertices + cells - 1) / cells);
}

void add_to(std::vector<std::int64_t>& histogram, std::int64_t degree) {
  const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(degree)));
  if (histogram.size() <= bucket) histogram.resize(bucket + 1);
  ++histogram[bucket];
}

}  // namespace

Density density_of(const Graph& graph) {
  const std::int64_t num_rows = graph.num_rows(), num_cols = graph.num_cols();
  const std::int64_t rows = std::min(num_rows, most_cells);
  const std::int64_t columns = std::min(num_cols, most_cells);
  Density density{graph.num_rows(), graph.num_cols(), static_cast<int>(rows),
                  static_cast<int>(columns)};
  density.edges.resize(static_cast<std::size_t>(rows * columns));
  if (density.edges.empty()) return density;
  parallel_tasks(rows, [&](std::int64_t cell_row) {
    std::int64_t* const counts = density.edges.data() + cell_row * columns;
    const VertexId end = first_of(cell_row + 1, rows, num_rows);
    for (VertexId row = first_of(cell_row, rows, num_rows); row < end; ++row) {
      for (const VertexId column : graph.neighbours(row)) {
        ++counts[std::int64_t{column} * columns / num_cols];
      }
    }
  });
  density.most = *std::max_element(density.edges.begin(), density.edges.end());
  density.least = density.most;
  for (const std::int64_t edges : density.edges) {
    if (edges > 0) density.least = std::min(density.least, edges);
  }
  return density;
}

Degrees degrees_of(const Graph& graph) {
  Degrees degrees;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    add_to(degrees.in, static_cast<std::int64_t>(graph.neighbours(row).size()));
  }
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(graph.num_cols()));
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (const VertexId column : graph.neighbours(row)) {
      ++lengths[static_cast<std::size_t>(column)];
    }
  }
  for (const std::int32_t length : lengths) add_to(degrees.out, length);
  return degrees;
}

}  // namespace tessera::app::picture
