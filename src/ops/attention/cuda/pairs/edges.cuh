// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/row_walk.cuh"
#include "ops/windows/warp_rows.cuh"

/// Who takes which edges. A matrix instruction has 16 rows, and here they are edges: eight of each
/// of two rows of the graph, the halves of a warp's work, or all 16 of a long row, whose pieces are
/// as in row_walk.cuh. A lane 4 g + q has to do with edge g of either half and, of every 32
/// features, with eight from 8 q on.
namespace tessera::ops {

inline constexpr int half_edges = 8;

struct PairEdges {
  // Of either half.
  const VertexId* ids[2] = {nullptr, nullptr};  ///< at the other ends of the edges
  VertexId rows[2] = {-1, -1};                  ///< < 0: none
  int left[2] = {0, 0};
  int turn = half_edges;  ///< edges of a half from one step to the next
  int steps = 0;

  __device__ bool has_edges(int half) const { return left[half] > 0; }
};

/// A short row, or none: below 2^31 + 2.
struct ShortRow {
  VertexId row = -1;
  EdgeOffset begin = 0;
  int count = 0;

  __device__ ShortRow(const RowsAttentionLaunch& launch, unsigned number) {
    if (number >= static_cast<unsigned>(launch.num_rows)) return;
    begin = row_begin(launch.offsets, number);
    const EdgeOffset edges = row_begin(launch.offsets, number + 1) - begin;
    if (edges > launch.short_row) return;
    row = static_cast<VertexId>(number);
    count = static_cast<int>(edges);
  }
};

__device__ inline PairEdges pair_edges(const RowsAttentionLaunch& launch, unsigned item) {
  PairEdges edges;
  if (is_piece(launch, item)) {
    const RowPiece piece = piece_of(launch, item);
    edges.turn = 2 * half_edges;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = half * half_edges;
      edges.ids[half] = launch.indices + piece.begin + first;
      edges.rows[half] = piece.row;
      edges.left[half] = piece.count - first;
    }
  } else {
    const unsigned first = (item - launch.num_pieces) * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const ShortRow row(launch, first + static_cast<unsigned>(half));
      edges.ids[half] = launch.indices + row.begin;
      edges.rows[half] = row.row;
      edges.left[half] = row.count;
    }
  }
  const int most = __reduce_max_sync(~0u, max(edges.left[0], edges.left[1]));
  edges.steps = (most + edges.turn - 1) / edges.turn;
  return edges;
}

/// What an item is, after its edges: who kept it meanwhile would lack the registers.
struct PairResult {
  VertexId row = -1;  ///< of the half whose sums this lane has; < 0: none, or another stores it
  bool has_edges = false;
  bool one_row = false;
  RowPiece piece;

  __device__ bool is_cut() const { return piece.slot >= 0; }
};

__device__ inline PairResult pair_result(const RowsAttentionLaunch& launch, unsigned item,
                                         int half) {
  asm volatile("" : "+r"(item));
  PairResult result;
  if (is_piece(launch, item)) {
    result.one_row = true;
    result.piece = piece_of(launch, item);
    result.has_edges = result.piece.count > 0;
    if (half == 0) result.row = result.piece.row;
    return result;
  }
  const ShortRow row(launch, (item - launch.num_pieces) * 2 + static_cast<unsigned>(half));
  result.row = row.row;
  result.has_edges = row.count > 0;
  return result;
}

/// The vertices at the other ends of this lane's two edges; those that do not exist are not to be
/// looked at.
struct PairVertices {
  VertexId ids[2] = {0, 0};
  bool exist[2] = {false, false};

  __device__ static PairVertices load(const PairEdges& edges) {
    PairVertices vertices;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      vertices.exist[half] = WarpLane::group() < edges.left[half];
      if (vertices.exist[half]) vertices.ids[half] = __ldg(edges.ids[half] + WarpLane::group());
    }
    return vertices;
  }
};

/// Calls step(vertices) for all edges, eight of each half at a time. The vertices of the next step
/// are loaded while the features of this one are.
template <class Step>
__device__ void for_pairs(PairEdges edges, Step&& step) {
  PairVertices next = PairVertices::load(edges);
#pragma unroll 1
  for (int left = edges.steps; left > 0; --left) {
    const PairVertices vertices = next;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      edges.ids[half] += edges.turn;
      edges.left[half] -= edges.turn;
    }
    next = PairVertices::load(edges);
    step(vertices);
  }
}

/// Rows of 16-bit features as a lane has them: of each 32 features eight.
template <class T, int width>
struct LaneRow {
  static constexpr int chunks = width / 32;
  uint4 of[chunks];

  /// Zeros unless `wanted`.
  __device__ void load(const FeatureRows& rows, VertexId row, bool wanted) {
    const char* const from = rows.at(wanted ? row : 0);
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      of[chunk] = cuda::Vector<T, 16>::load_if(wanted, from + chunk * 64).raw;
    }
  }
};

/// Where a lane's features of a matrix begin.
template <int width>
__device__ FeatureRows lane_features(const AttentionRows& rows) {
  return FeatureRows(rows.data, rows.row_bytes / 2, width, WarpLane::quarter() * 8);
}

}  // namespace tessera::ops
