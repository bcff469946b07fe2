// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/last_arrival.cuh"
#include "cuda/launch.cuh"
#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/rows/scores.cuh"
#include "ops/cuda/dropout.cuh"

/// How a warp goes over rows. A piece belongs to the whole warp: its groups of lanes take different
/// edges, and put together what they found. Short rows belong to one group each. Either way every
/// group has a batch of edges in flight.
namespace tessera::ops {

/// The edges of a row that fall to this lane's group: batches of consecutive ones, of which the
/// groups of a piece take turns.
struct GroupEdges {
  VertexId row = -1;     ///< < 0: none
  EdgeOffset begin = 0;  ///< of the group's first batch
  int left = 0;          ///< edges from there to the end of the row or piece; may be negative
  int turn = 0;          ///< edges from one batch of the group to the next
  int group = 0;         ///< of those that share the row
  int num_groups = 1;
  RowPiece piece;  ///< where it is one

  __device__ bool has_edges() const { return row >= 0 && piece.count > 0; }
  __device__ bool is_cut() const { return piece.slot >= 0; }
  /// Whether this lane's group stores the results of the row, once groups have put theirs together.
  __device__ bool stores() const { return row >= 0 && group == 0; }
};

__device__ inline EdgeOffset row_begin(const cuda::Offsets& offsets, unsigned row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

/// Work items of the grid: pieces, then warps of short rows.
__device__ inline unsigned num_items(const RowsAttentionLaunch& launch) {
  const auto rows = static_cast<unsigned>(launch.num_rows + launch.shape.groups() - 1);
  return launch.num_pieces + (rows >> launch.shape.log_groups());
}

__device__ inline unsigned warp_of_grid() {
  return blockIdx.x * rows_attention_warps + threadIdx.x / 32;
}

__device__ inline unsigned num_warps() { return gridDim.x * rows_attention_warps; }

/// `batch` edges at once.
template <int batch>
__device__ GroupEdges edges_of(const RowsAttentionLaunch& launch, unsigned item) {
  const int groups = launch.shape.groups();
  const int group = static_cast<int>(threadIdx.x) % 32 >> launch.shape.log_lanes;
  GroupEdges edges;
  edges.turn = batch;
  if (item < launch.num_pieces) {
    const auto* const raw = reinterpret_cast<const int4*>(launch.pieces + item);
    const int4 halves[2] = {__ldg(raw), __ldg(raw + 1)};
    memcpy(&edges.piece, halves, sizeof edges.piece);
    edges.row = edges.piece.row;
    edges.begin = edges.piece.begin + group * batch;
    edges.left = edges.piece.count - group * batch;
    edges.turn = groups * batch;
    edges.group = group;
    edges.num_groups = groups;
    return edges;
  }
  // Below 2^31 + 32.
  const unsigned row =
      ((item - launch.num_pieces) << launch.shape.log_groups()) + static_cast<unsigned>(group);
  if (row >= static_cast<unsigned>(launch.num_rows)) return edges;
  const EdgeOffset begin = row_begin(launch.offsets, row);
  const EdgeOffset count = row_begin(launch.offsets, row + 1) - begin;
  if (count > launch.short_row) return edges;
  edges.row = static_cast<VertexId>(row);
  edges.begin = begin;
  edges.left = static_cast<int>(count);
  edges.piece.count = static_cast<int>(count);
  return edges;
}

/// The gathered vertices of a batch; of edges that do not exist, vertex 0.
template <int batch>
struct BatchVertices {
  VertexId ids[batch];

  __device__ static BatchVertices load(const VertexId* from, int left) {
    BatchVertices vertices;
    if (left >= batch) {
#pragma unroll
      for (int u = 0; u < batch; ++u) vertices.ids[u] = __ldg(from + u);
    } else {
#pragma unroll
      for (int u = 0; u < batch; ++u) vertices.ids[u] = u < left ? __ldg(from + u) : 0;
    }
    return vertices;
  }
};

/// Calls visit.step<whole>(position of the first edge, edges that exist, vertices) for every batch
/// of the group. The vertices of the next batch are on their way while the features of this one
/// are.
template <int batch, class Visit>
__device__ void for_batches(const RowsAttentionLaunch& launch, const GroupEdges& edges,
                            Visit& visit) {
  const VertexId* indices = launch.indices + edges.begin;
  EdgeOffset position = edges.begin;
  int left = edges.left;
  auto next = BatchVertices<batch>::load(indices, left);
#pragma unroll 1
  while (left >= batch) {
    const auto vertices = next;
    indices += edges.turn;
    left -= edges.turn;
    next = BatchVertices<batch>::load(indices, left);
    visit.template step<true>(position, batch, vertices);
    position += edges.turn;
  }
  if (left > 0) visit.template step<false>(position, left, next);
}

/// What the weight of an edge is multiplied by, for a head.
__device__ inline float dropped(const RowsAttentionLaunch& launch, EdgeOffset edge, int head) {
  const EdgeOffset position = launch.positions != nullptr ? __ldg(launch.positions + edge) : edge;
  return dropout_factor(launch.dropout, static_cast<std::uint64_t>(position * launch.heads + head));
}

/// Whether this warp is the last one of its row's pieces: true for all of its lanes.
__device__ inline bool is_last_piece(const RowsAttentionLaunch& launch, const RowPiece& piece) {
  unsigned* const counter =
      launch.num_done + std::size_t{blockIdx.y} * launch.num_cut_rows + piece.cut_row;
  return cuda::is_last_warp(counter, static_cast<unsigned>(piece.num_slots));
}

}  // namespace tessera::ops
