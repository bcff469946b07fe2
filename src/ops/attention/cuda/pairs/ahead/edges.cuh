// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/pairs/edges.cuh"

/// Who takes which edges, as in pairs/edges.cuh, with what must be known a step or an item ahead:
/// where a lane's own edges begin, and offsets before anybody waits for them.
namespace tessera::ops::ahead {

template <int part_edges>
struct PairEdges {
  static constexpr int parts_of_half = 8 / part_edges;
  static constexpr int num_parts = 2 * parts_of_half;

  // Of this lane's part of either half.
  VertexId rows[2] = {-1, -1};                  ///< < 0: none
  const VertexId* ids[2] = {nullptr, nullptr};  ///< at the other ends, from this lane's edge on
  int left[2] = {-slot(), -slot()};             ///< edges from there on
  // The same in all lanes.
  int done = 0;
  int turn = part_edges;
  int steps = 0;

  __device__ static int part_of(int half) {
    return half * parts_of_half + WarpLane::group() / part_edges;
  }
  __device__ static int slot() { return WarpLane::group() % part_edges; }
  __device__ bool exists(int half) const { return done < left[half]; }

  /// Rows without edges have a step, too.
  __device__ void count_steps() {
    const int most = __reduce_max_sync(~0u, max(left[0], left[1]) + slot());
    steps = max((most + turn - 1) / turn, 1);
  }
};

template <int part_edges>
__device__ PairEdges<part_edges> piece_edges(const RowsAttentionLaunch& launch, unsigned item) {
  using Edges = PairEdges<part_edges>;
  const RowPiece piece = piece_of(launch, item);
  Edges edges;
  edges.turn = 2 * 8;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first = Edges::part_of(half) * part_edges + Edges::slot();
    edges.rows[half] = piece.row;
    edges.ids[half] = launch.indices + piece.begin + first;
    edges.left[half] = piece.count - first;
  }
  edges.count_steps();
  return edges;
}

/// Where the short rows of an item begin and end: a lane has one of these numbers, as it lies in
/// memory, since who converts it waits for it.
template <int part_edges>
class ItemOffsets {
  using Edges = PairEdges<part_edges>;

 public:
  __device__ void load(const RowsAttentionLaunch& launch, unsigned item) {
    const auto lane = static_cast<unsigned>(WarpLane::number());
    const unsigned row = first_row(launch, item) + lane;
    if (lane > Edges::num_parts || row > static_cast<unsigned>(launch.num_rows)) return;
    if (launch.offsets.narrow != nullptr) {
      raw_.x = __ldg(reinterpret_cast<const unsigned*>(launch.offsets.narrow + row));
    } else {
      raw_ = __ldg(reinterpret_cast<const uint2*>(launch.offsets.wide + row));
    }
  }
  /// All lanes together.
  __device__ Edges edges(const RowsAttentionLaunch& launch, unsigned item) const {
    Edges edges;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int part = Edges::part_of(half);
      const unsigned row = first_row(launch, item) + static_cast<unsigned>(part);
      const EdgeOffset begin = offset_of(part);
      const EdgeOffset count = offset_of(part + 1) - begin;
      // Longer ones are among the pieces.
      if (row < static_cast<unsigned>(launch.num_rows) && count <= launch.short_row) {
        edges.rows[half] = static_cast<VertexId>(row);
        edges.ids[half] = launch.indices + begin + Edges::slot();
        edges.left[half] = static_cast<int>(count) - Edges::slot();
      }
    }
    edges.count_steps();
    return edges;
  }

 private:
  /// Below 2^31 + 4.
  __device__ static unsigned first_row(const RowsAttentionLaunch& launch, unsigned item) {
    return (item - launch.num_pieces) * Edges::num_parts;
  }
  __device__ EdgeOffset offset_of(int part) const {
    const std::uint64_t low = __shfl_sync(~0u, raw_.x, part);
    return static_cast<EdgeOffset>(std::uint64_t{__shfl_sync(~0u, raw_.y, part)} << 32 | low);
  }

  uint2 raw_ = {0, 0};
};

/// The vertices at the other ends of this lane's two edges; 0 where there is none.
struct PairVertices {
  VertexId ids[2] = {0, 0};

  template <int part_edges>
  __device__ static PairVertices load(const PairEdges<part_edges>& edges) {
    PairVertices vertices;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (edges.exists(half)) vertices.ids[half] = __ldg(edges.ids[half] + edges.done);
    }
    return vertices;
  }
};

}  // namespace tessera::ops::ahead
