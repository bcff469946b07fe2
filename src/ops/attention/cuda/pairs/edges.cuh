// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/rows/walk.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// Who takes which edges. A matrix instruction has 16 rows, and here they are edges: of two rows of
/// the graph eight each, or of four rows four each, so that a lane has edges in both halves of
/// them; a long row takes all 16, its pieces as in rows/walk.cuh. A lane 4 g + q has to do with
/// edge g of either half and, of every 32 features, with eight from 8 q on.
///
///     part_edges 8:   part 0 | part 1            part_edges 4:   part 0, part 1 | part 2, part 3
///                     half 0 | half 1                            half 0         | half 1
namespace tessera::ops {

template <int part_edges>
struct PairEdges {
  static constexpr int parts_of_half = 8 / part_edges;
  static constexpr int num_parts = 2 * parts_of_half;

  // Of this lane's part of either half.
  const VertexId* ids[2] = {nullptr, nullptr};  ///< at the other ends of the edges
  VertexId rows[2] = {-1, -1};                  ///< < 0: none
  int left[2] = {0, 0};
  // The same in all lanes.
  int turn = part_edges;
  int steps = 0;

  __device__ static int part_of(int half) {
    return half * parts_of_half + WarpLane::group() / part_edges;
  }
  __device__ static int slot() { return WarpLane::group() % part_edges; }
  __device__ bool has_edges(int half) const { return left[half] > 0; }
};

/// All parts have the same row.
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

/// A short row, or none: below 2^31 + 4.
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

template <int part_edges>
__device__ PairEdges<part_edges> pair_edges(const RowsAttentionLaunch& launch, unsigned item) {
  using Edges = PairEdges<part_edges>;
  Edges edges;
  if (is_piece(launch, item)) {
    const RowPiece piece = piece_of(launch, item);
    edges.turn = 2 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = Edges::part_of(half) * part_edges;
      edges.ids[half] = launch.indices + piece.begin + first;
      edges.rows[half] = piece.row;
      edges.left[half] = piece.count - first;
    }
  } else {
    const unsigned first = (item - launch.num_pieces) * Edges::num_parts;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const ShortRow row(launch, first + static_cast<unsigned>(Edges::part_of(half)));
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
  VertexId row = -1;  ///< of the part whose sums this lane has; < 0: none, or another stores it
  bool has_edges = false;
  bool one_row = false;
  RowPiece piece;

  __device__ bool is_cut() const { return piece.slot >= 0; }
};

template <int part_edges>
__device__ PairResult pair_result(const RowsAttentionLaunch& launch, unsigned item, int part) {
  asm volatile("" : "+r"(item));
  PairResult result;
  if (is_piece(launch, item)) {
    result.one_row = true;
    result.piece = piece_of(launch, item);
    result.has_edges = result.piece.count > 0;
    if (part == 0) result.row = result.piece.row;
    return result;
  }
  const ShortRow row(launch, (item - launch.num_pieces) * PairEdges<part_edges>::num_parts +
                                 static_cast<unsigned>(part));
  result.row = row.row;
  result.has_edges = row.count > 0;
  return result;
}

/// The vertices at the other ends of this lane's two edges; those that do not exist are not to be
/// looked at.
struct PairVertices {
  VertexId ids[2] = {0, 0};
  bool exist[2] = {false, false};

  template <int part_edges>
  __device__ static PairVertices load(const PairEdges<part_edges>& edges) {
    PairVertices vertices;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      vertices.exist[half] = edges.slot() < edges.left[half];
      if (vertices.exist[half]) vertices.ids[half] = __ldg(edges.ids[half] + edges.slot());
    }
    return vertices;
  }
};

/// Calls step(vertices) for all edges, `part_edges` of each part at a time. The vertices of the
/// next are on their way while the features of these are.
template <int part_edges, class Step>
__device__ void for_pairs(PairEdges<part_edges> edges, Step&& step) {
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
