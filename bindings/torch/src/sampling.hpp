// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operators.hpp"
#include "sample/candidates.hpp"
#include "sample/hops.hpp"
#include "tessera/core/parallel.hpp"

/// What drawing neighbours needs on every device. What is known about a graph's edges is kept in
/// tensors that the caller owns.
namespace tessera::torch_ops {

/// The numbers of a tensor, which the caller keeps alive.
template <class T>
SharedArray<T> shared(const Tensor& tensor) {
  return {nullptr, static_cast<const T*>(tensor.const_data_ptr()), tensor.numel()};
}
template <class T>
std::span<const T> span_of(const std::optional<Tensor>& tensor) {
  return tensor ? shared<T>(*tensor).span() : std::span<const T>();
}

template <class To, class From>
Tensor tensor_of(const Tensor& beside, const From* values, std::int64_t size, ScalarType type) {
  Tensor result = empty_beside(beside, size, type);
  To* const to = static_cast<To*>(result.mutable_data_ptr());
  parallel_ranges(size, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::copy(values + begin, values + end, to + begin);
  });
  return result;
}
/// As numbers of 64 bits, in this process.
template <class Array>
Tensor numbers(const Tensor& beside, const Array& values) {
  return tensor_of<std::int64_t>(beside, std::data(values),
                                 static_cast<std::int64_t>(std::size(values)), ScalarType::Long);
}

/// Of what `neighbour_candidates` returns.
inline sample::Candidates known_candidates(const std::vector<Tensor>& known) {
  return {shared<EdgeOffset>(known.at(0)),
          shared<VertexId>(known.at(1)),
          {},
          shared<std::int64_t>(known.at(3)),
          shared<float>(known.at(4)),
          shared<double>(known.at(5))};
}

/// The caller's numbers of candidates.
inline const std::int64_t* edge_numbers_of(const std::vector<Tensor>& known) {
  return static_cast<const std::int64_t*>(known.at(2).const_data_ptr());
}

/// Seeds, in this process, that are vertices of the graph.
inline std::vector<VertexId> checked_seeds(const Tensor& seeds,
                                           const sample::Candidates& candidates) {
  std::vector<VertexId> vertices;
  vertices.reserve(static_cast<std::size_t>(seeds.numel()));
  for (const std::int64_t one : shared<std::int64_t>(seeds).span()) {
    if (one < 0 || one >= candidates.num_vertices()) {
      throw Error(ErrorCode::invalid_argument,
                  "seed " + std::to_string(one) + " of a graph with " +
                      std::to_string(candidates.num_vertices()) + " vertices",
                  "neighbours", "number seeds as the graph does");
    }
    vertices.push_back(static_cast<VertexId>(one));
  }
  return vertices;
}

}  // namespace tessera::torch_ops
