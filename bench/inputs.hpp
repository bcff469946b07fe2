// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::bench {

/// Uniform in [-1, 1), the same for any number of threads.
template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const Random random(seed);
  Matrix<T> result(rows, cols);
  parallel_for(result.size(), 1 << 14, [&](std::int64_t i) {
    const double uniform = random.uniform(static_cast<std::uint64_t>(i));
    result.data()[i] = static_cast<T>(static_cast<float>(2 * uniform - 1));
  });
  return result;
}

/// Zeros, written by the threads that will use them.
template <class T>
Matrix<T> zero_matrix(std::int64_t rows, std::int64_t cols) {
  Matrix<T> result(rows, cols);
  parallel_for(result.size(), 1 << 14,
               [&](std::int64_t i) { result.data()[i] = static_cast<T>(0.0f); });
  return result;
}

/// Bytes of the arrays of a graph that a sparse op must read. On a GPU only the edges count, four
/// bytes each: formats differ in how they say where rows begin.
inline std::int64_t structure_bytes(const Graph& graph, Device device = {}) {
  const std::int64_t edges = static_cast<std::int64_t>(sizeof(VertexId)) * graph.num_edges();
  if (device.kind != DeviceKind::cpu) return edges;
  return static_cast<std::int64_t>(sizeof(EdgeOffset)) * graph.row_offsets().size() + edges;
}
inline std::int64_t weight_bytes(const Graph& graph) {
  return static_cast<std::int64_t>(sizeof(float)) *
         (graph.values().size() + graph.row_scale().size() + graph.col_scale().size());
}

template <class T>
std::int64_t bytes_of(const Matrix<T>& matrix) {
  return matrix.size() * static_cast<std::int64_t>(sizeof(T));
}

inline Matrix<double> absolute(Matrix<double> matrix) {
  for (double& value : matrix.span()) value = value < 0 ? -value : value;
  return matrix;
}

/// 0, step, 2 * step … below `count`: at most `wanted` rows spread evenly.
inline std::vector<std::int64_t> spread_rows(std::int64_t count, std::int64_t wanted) {
  const std::int64_t step = count <= wanted ? 1 : (count + wanted - 1) / wanted;
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < count; row += step) rows.push_back(row);
  return rows;
}

}  // namespace tessera::bench
