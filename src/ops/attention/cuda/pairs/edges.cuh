// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/rows/walk.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// Who takes which edges. A matrix instruction has 16 rows, and here they are edges: eight of one
/// row of the graph, half 0, and eight of the next, half 1; a long row takes both halves, its
/// pieces as in rows/walk.cuh. A lane 4 g + q has to do with edge g of either half and, of every 32
/// features, with eight from 8 q on.
namespace tessera::ops {

inline constexpr int half_edges = 8;

struct PairEdges {
  const VertexId* ids = nullptr;  ///< at the other ends of the edges of half 0
  EdgeOffset apart = 0;           ///< those of half 1 are so many further on
  VertexId rows[2] = {-1, -1};    ///< < 0: none
  int left[2] = {0, 0};
  int turn = half_edges;

  __device__ bool has_edges() const { return left[0] > 0 || left[1] > 0; }
};

/// Both halves have the same row.
__device__ inline bool is_piece(const RowsAttentionLaunch& launch, unsigned item) {
  return item < launch.num_pieces;
}
__device__ inline RowPiece piece_of(const RowsAttentionLaunch& launch, unsigned item) {
  const auto* const raw = reinterpret_cast<const int4*>(launch.pieces + item);
  const int4 parts[2] = {__ldg(raw), __ldg(raw + 1)};
  RowPiece piece;
  memcpy(&piece, parts, sizeof piece);
  return piece;
}

__device__ inline PairEdges pair_edges(const RowsAttentionLaunch& launch, unsigned item) {
  PairEdges edges;
  if (is_piece(launch, item)) {
    const RowPiece piece = piece_of(launch, item);
    edges.ids = launch.indices + piece.begin;
    edges.apart = half_edges;
    edges.turn = 2 * half_edges;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      edges.rows[half] = piece.row;
      edges.left[half] = piece.count - half * half_edges;
    }
    return edges;
  }
  // Below 2^31 + 2.
  const unsigned first = (item - launch.num_pieces) * 2;
  EdgeOffset begin = row_begin(launch.offsets, first);
  edges.ids = launch.indices + begin;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const unsigned row = first + static_cast<unsigned>(half);
    if (row >= static_cast<unsigned>(launch.num_rows)) break;
    const EdgeOffset end = row_begin(launch.offsets, row + 1);
    if (end - begin <= launch.short_row) {
      edges.rows[half] = static_cast<VertexId>(row);
      edges.left[half] = static_cast<int>(end - begin);
    }
    if (half == 0) edges.apart = end - begin;
    begin = end;
  }
  return edges;
}

/// What an item is, after its edges: who kept it meanwhile would lack the registers.
struct PairResult {
  VertexId row = -1;  ///< of this lane's half; < 0: none, or another lane stores it
  bool has_edges = false;
  bool one_row = false;
  RowPiece piece;

  __device__ bool is_cut() const { return piece.slot >= 0; }
  /// Of several pieces of a row one says what belongs to the row.
  __device__ bool is_first() const { return !is_cut() || piece.slot == piece.first_slot; }
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
  const unsigned row = (item - launch.num_pieces) * 2 + static_cast<unsigned>(half);
  if (row >= static_cast<unsigned>(launch.num_rows)) return result;
  const EdgeOffset count = row_begin(launch.offsets, row + 1) - row_begin(launch.offsets, row);
  if (count > launch.short_row) return result;
  result.row = static_cast<VertexId>(row);
  result.has_edges = count > 0;
  return result;
}

/// The vertices at the other ends of this lane's two edges; those that do not exist are not to be
/// looked at.
struct PairVertices {
  VertexId ids[2] = {0, 0};
  bool exist[2] = {false, false};

  __device__ static PairVertices load(const PairEdges& edges) {
    PairVertices vertices;
    const int g = WarpLane::group();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      vertices.exist[half] = g < edges.left[half];
      if (vertices.exist[half]) {
        vertices.ids[half] = __ldg(edges.ids + (half == 0 ? 0 : edges.apart) + g);
      }
    }
    return vertices;
  }
};

/// Calls step(vertices) for every eight edges of either half. The vertices of the next are on their
/// way while the features of these are.
template <class Step>
__device__ void for_pairs(PairEdges edges, Step&& step) {
  PairVertices next = PairVertices::load(edges);
#pragma unroll 1
  while (edges.has_edges()) {
    const PairVertices vertices = next;
    edges.ids += edges.turn;
    edges.left[0] -= edges.turn;
    edges.left[1] -= edges.turn;
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
