// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/simd/isa.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"

/// A graph's scales as CPU kernels want them.
namespace tessera::ops {

/// A scale in the precision of the sums; the graph's own array where that is fp32.
template <class S>
SharedArray<S> scale_as(const SharedArray<float>& scale) {
  if constexpr (std::is_same_v<S, float>) {
    return scale;
  } else {
    Buffer<S> converted(scale.size());
    std::copy(scale.begin(), scale.end(), converted.begin());
    return SharedArray<S>(std::move(converted));
  }
}

/// row_scale / degree of every row: a mean's share of each of its edges.
template <class S>
SharedArray<S> mean_scale(const Graph& graph) {
  Buffer<S> scale(graph.num_rows());
  parallel_for(graph.num_rows(), 1 << 14, [&](std::int64_t i) {
    const EdgeOffset degree = graph.degree(static_cast<VertexId>(i));
    const S own = graph.has_row_scale() ? static_cast<S>(graph.row_scale()[i]) : S(1);
    scale[i] = degree == 0 ? S(0) : own / static_cast<S>(degree);
  });
  return SharedArray<S>(std::move(scale));
}

}  // namespace tessera::ops
