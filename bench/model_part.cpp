// SPDX-License-Identifier: Apache-2.0
#include "bench/model_part.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::bench {
namespace {

/// The numbers of all blocks in a drawn order.
std::vector<std::int64_t> shuffled_blocks(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), 0);
  const Random random(seed);
  for (std::size_t left = blocks.size(); left > 1; --left) {
    std::swap(blocks[left - 1], blocks[random.below(left, left)]);
  }
  return blocks;
}

std::vector<VertexId> drawn_vertices(const Graph& graph, std::uint64_t seed, const PartSize& size) {
  const std::int64_t rows = graph.num_rows();
  std::vector<VertexId> vertices;
  EdgeOffset edges = 0;
  for (const std::int64_t block : shuffled_blocks((rows + size.block - 1) / size.block, seed)) {
    const std::int64_t begin = block * size.block;
    const std::int64_t end = std::min(begin + size.block, rows);
    for (std::int64_t row = begin; row < end; ++row) {
      vertices.push_back(static_cast<VertexId>(row));
    }
    edges += graph.row_offsets()[end] - graph.row_offsets()[begin];
    if (std::ssize(vertices) >= size.vertices || edges >= size.edges) break;
  }
  std::sort(vertices.begin(), vertices.end());
  return vertices;
}

DenseFeatures rows_of(const Matrix<float>& features, const std::vector<VertexId>& rows) {
  auto chosen = std::make_shared<Matrix<float>>(std::ssize(rows), features.cols());
  parallel_for(chosen->rows(), 256, [&](std::int64_t i) {
    const float* const from = features.view().row(rows[static_cast<std::size_t>(i)]);
    std::copy(from, from + features.cols(), chosen->view().row(i));
  });
  return chosen;
}

}  // namespace

train::Problem part_of(const train::Problem& problem, std::uint64_t seed, const PartSize& size) {
  const auto* const features = std::get_if<DenseFeatures>(&problem.features);
  const Graph& graph = problem.graph;
  const bool is_small = graph.num_rows() <= size.vertices && graph.num_edges() <= size.edges;
  if (is_small || problem.graph_task || features == nullptr) return problem;
  const std::vector<VertexId> vertices = drawn_vertices(graph, seed, size);
  train::Problem part;
  part.name = problem.name;
  part.graph = induced_subgraph(graph, vertices);
  part.features = rows_of(**features, vertices);
  part.num_items = std::ssize(vertices);
  part.outputs = problem.outputs;
  return part;
}

}  // namespace tessera::bench
