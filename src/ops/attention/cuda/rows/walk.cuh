// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "ops/attention/cuda/rows/scores.cuh"
#include "ops/cuda/dropout.cuh"

/// How a warp goes over rows. A piece belongs to the whole warp: its groups of lanes take different
/// edges, and put together what they found. Short rows belong to one group each. Either way every
/// group has several edges in flight.
namespace tessera::ops {

inline constexpr float log2_of_e = 1.44269504088896340736f;
inline constexpr float ln_of_2 = 0.69314718055994530942f;

/// 2^x by the GPU's own instruction, right to 2^-22; what is below the normal numbers is 0.
__device__ inline float power_of_2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The edges of a row that fall to this lane's group: `count` of them in all, of which the group
/// takes every `stride`-th.
struct GroupEdges {
  VertexId row = -1;  ///< < 0: none
  EdgeOffset begin = 0;
  int count = 0;
  int stride = 1;
  int first = 0;
  RowPiece piece;  ///< where it is one

  __device__ bool is_piece() const { return piece.slot >= 0; }
  /// Whether this lane's group stores the results of the row, once groups have put theirs together.
  __device__ bool stores() const { return row >= 0 && first == 0; }
};

__device__ inline EdgeOffset row_begin(const cuda::Offsets& offsets, VertexId row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

/// Work items of the grid: pieces, then warps of short rows.
__device__ inline unsigned num_items(const RowsAttentionLaunch& launch) {
  const int groups = 32 / launch.shape.lanes;
  return launch.num_pieces + static_cast<unsigned>((launch.num_rows + groups - 1) / groups);
}

__device__ inline GroupEdges edges_of(const RowsAttentionLaunch& launch, unsigned item) {
  const int groups = 32 / launch.shape.lanes;
  const int group = static_cast<int>(threadIdx.x) % 32 / launch.shape.lanes;
  GroupEdges edges;
  if (item < launch.num_pieces) {
    const auto* const raw = reinterpret_cast<const int4*>(launch.pieces + item);
    const int4 halves[2] = {__ldg(raw), __ldg(raw + 1)};
    memcpy(&edges.piece, halves, sizeof edges.piece);
    edges.row = edges.piece.row;
    edges.begin = edges.piece.begin;
    edges.count = edges.piece.count;
    edges.stride = groups;
    edges.first = group;
    return edges;
  }
  const std::int64_t row = std::int64_t{item - launch.num_pieces} * groups + group;
  if (row >= launch.num_rows) return edges;
  const EdgeOffset begin = row_begin(launch.offsets, static_cast<VertexId>(row));
  const EdgeOffset count = row_begin(launch.offsets, static_cast<VertexId>(row + 1)) - begin;
  if (count > launch.short_row) return edges;
  edges.row = static_cast<VertexId>(row);
  edges.begin = begin;
  edges.count = static_cast<int>(count);
  return edges;
}

/// The gathered vertices of `unroll` edges of a group; of those that do not exist, vertex 0.
template <int unroll>
struct EdgeBatch {
  VertexId vertex[unroll];
  bool exists[unroll];

  __device__ static EdgeBatch at(const RowsAttentionLaunch& launch, const GroupEdges& edges,
                                 int step) {
    EdgeBatch batch;
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const int place = (step * unroll + u) * edges.stride + edges.first;
      batch.exists[u] = place < edges.count;
      batch.vertex[u] = batch.exists[u] ? __ldg(launch.indices + edges.begin + place) : 0;
    }
    return batch;
  }
};

/// Steps of the group that has most of them: all lanes of a warp take part in every exchange.
template <int unroll>
__device__ int steps_of(const GroupEdges& edges) {
  const int step = unroll * edges.stride;
  return __reduce_max_sync(~0u, (edges.count + step - 1) / step);
}

/// What the weight of an edge is multiplied by, for this lane's head.
template <class Lanes>
__device__ float dropped(const RowsAttentionLaunch& launch, const Lanes& lanes,
                         const GroupEdges& edges, int place) {
  EdgeOffset position = edges.begin + place;
  if (launch.positions != nullptr) position = __ldg(launch.positions + position);
  return dropout_factor(launch.dropout,
                        static_cast<std::uint64_t>(position * launch.heads + lanes.head()));
}

/// The factors of a batch; 1 where nothing is dropped.
template <int unroll, class Lanes>
__device__ void load_dropout(const RowsAttentionLaunch& launch, const Lanes& lanes,
                             const GroupEdges& edges, int step, float (&factors)[unroll]) {
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    const int place = (step * unroll + u) * edges.stride + edges.first;
    factors[u] =
        launch.drops && place < edges.count ? dropped(launch, lanes, edges, place) : 1.0f;
  }
}

/// Whether this warp is the last one of its row's pieces: true for all of its lanes.
__device__ inline bool is_last_piece(const RowsAttentionLaunch& launch, const RowPiece& piece) {
  __threadfence();
  __syncwarp();
  unsigned done = 0;
  if (threadIdx.x % 32 == 0) {
    unsigned* const counter =
        launch.num_done + std::size_t{blockIdx.y} * launch.num_cut_rows + piece.cut_row;
    done = atomicAdd(counter, 1u) + 1;
    if (done == static_cast<unsigned>(piece.num_slots)) *counter = 0;
  }
  done = __shfl_sync(~0u, done, 0);
  __threadfence();
  return done == static_cast<unsigned>(piece.num_slots);
}

__device__ inline unsigned warp_of_grid() {
  return blockIdx.x * rows_attention_warps + threadIdx.x / 32;
}

}  // namespace tessera::ops
