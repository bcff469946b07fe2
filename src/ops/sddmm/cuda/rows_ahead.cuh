// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "tessera/core/types.hpp"

/// What kernels have in common that multiply rows of one edge while those of the next are on their
/// way. A group of lanes goes along its edges in steps, of which each lane knows one, and asks for
/// the rows of an edge `depth` edges before it multiplies them, those of the next step among them.
/// A row that the edge before has, too, is not asked for again.
///
///     edges    0   1   2   3   4   5   6   7 |  8   9  ...
///              multiplied  ^ |  on their way |         |     depth = 4: 3, 4, 5, 6
namespace tessera::ops {

/// A lane's share of a row, in vectors of 16 bytes.
template <class T, int lanes, int vectors>
struct RowShare {
  using FeatureVector = cuda::Vector<T, 16>;
  using Features = float[vectors][FeatureVector::count];

  FeatureVector of[vectors];

  /// From a matrix whose first bytes for this lane are `matrix`.
  __device__ void load(const char* matrix, VertexId row, std::uint32_t row_bytes) {
    const char* const from =
        matrix + static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * row_bytes;
    // Plain loads: read-only ones may be moved to before the wait for the kernel that writes them.
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      of[k].raw = *reinterpret_cast<const typename FeatureVector::Raw*>(from + k * lanes * 16);
    }
  }
  __device__ void widen_to(Features& features) const {
#pragma unroll
    for (int k = 0; k < vectors; ++k) of[k].widen_to(features[k]);
  }
};

/// What a lane's features add to a dot product; `vector_of(k)` is the k-th vector of the other row.
template <int vectors, int count, class VectorOf>
__device__ float share_of_dot(const float (&held)[vectors][count], VectorOf&& vector_of) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    float values[count];
    vector_of(k).widen_to(values);
#pragma unroll
    for (int i = 0; i < count; ++i) sum = fmaf(held[k][i], values[i], sum);
  }
  return sum;
}

/// Bit e: edge e of a step has another vertex than the edge before, the first than `before`. This
/// lane has that of edge `lane % edges`.
template <int edges>
__device__ unsigned changes_of_step(VertexId vertex, VertexId before, int lane) {
  const VertexId previous = __shfl_up_sync(~0u, vertex, 1, edges);
  const bool first = lane % edges == 0;
  const unsigned changed = __ballot_sync(~0u, vertex != (first ? before : previous));
  return changed >> (threadIdx.x % 32 - lane);
}

/// Multiplies the edges of the step `now` and asks for those ahead, which `next` has too where it
/// is `wanted`.
template <int depth, int edges, class Group, class Step>
__device__ void multiply_step(Group& group, const Step& now, const Step& next, bool wanted,
                              float (&sums)[edges]) {
#pragma unroll
  for (int e = 0; e < edges; ++e) {
    const int slot = e % depth;
    sums[e] = group.multiply(slot, now, e);
    if (e + depth < edges) {
      group.ask(slot, now, e + depth);
    } else if (wanted) {
      group.ask(slot, next, e + depth - edges);
    }
  }
}

}  // namespace tessera::ops
