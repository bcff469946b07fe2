// SPDX-License-Identifier: Apache-2.0
#include "cuda/coo.hpp"

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "graph/weight_functions.hpp"

namespace tessera::cuda {
namespace {

__device__ float number_of(const float* numbers, VertexId vertex) {
  return numbers == nullptr ? 1.0f : numbers[vertex];
}

template <class Function>
__global__ void weigh(const WeighedEdges edges, const Function function, float* weights) {
  const EdgeOffset k = thread_number();
  if (k >= edges.count) return;
  weights[k] = function(edges.values == nullptr ? 1.0f : edges.values[k],
                        number_of(edges.row_numbers, edges.rows[k]),
                        number_of(edges.col_numbers, edges.cols[k]));
}

__global__ void expand(const Offsets offsets, VertexId num_rows, EdgeOffset count, VertexId* rows) {
  const EdgeOffset k = thread_number();
  if (k < count) rows[k] = row_of(offsets, num_rows, k);
}

__global__ void count(const WeighedEdges edges, const RowCounts counts) {
  const EdgeOffset k = thread_number();
  if (k >= edges.count) return;
  const VertexId row = edges.rows[k];
  if (counts.edges != nullptr) atomicAdd(counts.edges + row, 1u);
  if (counts.sums != nullptr) atomicAdd(counts.sums + row, static_cast<double>(edges.values[k]));
  if (counts.loops != nullptr && row == edges.cols[k]) atomicExch(counts.loops + row, 1u);
}

__global__ void rule(const RowCounts counts, VertexId num_vertices, const RuledVertices vertices) {
  const std::int64_t vertex = thread_number();
  if (vertex >= num_vertices) return;
  const bool adds = counts.loops != nullptr && counts.loops[vertex] == 0;
  if (vertices.degrees != nullptr) {
    vertices.degrees[vertex] = counts.edges[vertex] + (adds ? 1u : 0u);
  }
  if (vertices.loops != nullptr) vertices.loops[vertex] = adds ? vertices.loop_weight : 0.0f;
  if (vertices.scales == nullptr) return;
  double degree = counts.sums != nullptr ? counts.sums[vertex] : double(counts.edges[vertex]);
  if (adds) degree += static_cast<double>(vertices.loop_weight);
  vertices.scales[vertex] = static_cast<float>(degree <= 0 ? 0.0 : 1 / sqrt(degree));
}

}  // namespace

void weigh_edges(const WeighedEdges& edges, WeightFunction function, float* weights,
                 Stream stream) {
  visit_weight(function, [&](auto chosen) {
    launch_each(weigh<decltype(chosen)>, edges.count, stream, edges, chosen, weights);
  });
}

void expand_rows(const Offsets& offsets, VertexId num_rows, EdgeOffset count, VertexId* rows,
                 Stream stream) {
  launch_each(expand, count, stream, offsets, num_rows, count, rows);
}

void count_edges(const WeighedEdges& edges, const RowCounts& counts, Stream stream) {
  launch_each(count, edges.count, stream, edges, counts);
}

void rule_vertices(const RowCounts& counts, VertexId num_vertices, const RuledVertices& vertices,
                   Stream stream) {
  launch_each(rule, num_vertices, stream, counts, num_vertices, vertices);
}

}  // namespace tessera::cuda
