// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tessera/data/dataset.hpp"

#include "train/features.hpp"

/// What is known of some vertices of all.
namespace tessera::train {

inline std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

/// `values[vertices[0]], values[vertices[1]], …`
template <class T>
std::vector<T> taken(std::span<const T> values, std::span<const VertexId> vertices) {
  std::vector<T> result;
  result.reserve(vertices.size());
  for (const VertexId vertex : vertices) result.push_back(values[index_of(vertex)]);
  return result;
}

inline MultiLabels rows_of(const MultiLabels& targets, std::span<const VertexId> vertices) {
  if (targets == nullptr) return nullptr;
  return std::get<DenseFeatures>(take_rows(targets, vertices));
}

}  // namespace tessera::train
