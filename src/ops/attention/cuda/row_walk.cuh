// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/last_arrival.cuh"
#include "cuda/launch.cuh"
#include "ops/attention/cuda/row_launch.hpp"

/// How a warp goes over rows. A piece belongs to the whole warp: its groups of lanes take different
/// edges, and put together what they found. Short rows belong to one group each: a warp takes some
/// neighbouring ones in the order of their lengths, so that its groups, which go in step, have
/// about as much to do. Either way every group has a batch of edges in flight.
namespace tessera::ops {

/// The edges of a row that fall to this lane's group.
struct GroupEdges {
  VertexId row = -1;     ///< < 0: none
  int count = 0;         ///< of the row or piece
  EdgeOffset begin = 0;  ///< of the group's first batch
  int left = 0;          ///< edges from there to the end of the row or piece; may be negative
  bool leads = false;    ///< whether no other group has edges of the row before these

  __device__ bool has_edges() const { return row >= 0 && count > 0; }
};

__device__ inline EdgeOffset row_begin(const cuda::Offsets& offsets, unsigned row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

__device__ inline bool is_piece(const RowsAttentionLaunch& launch, unsigned item) {
  return item < launch.num_pieces;
}
__device__ inline RowPiece piece_of(const RowsAttentionLaunch& launch, unsigned item) {
  const auto* const raw = reinterpret_cast<const int4*>(launch.pieces + item);
  const int4 halves[2] = {__ldg(raw), __ldg(raw + 1)};
  RowPiece piece;
  memcpy(&piece, halves, sizeof piece);
  return piece;
}

/// Work items of the grid: pieces, then 2^log_rows short rows each.
__device__ inline unsigned num_items(const RowsAttentionLaunch& launch, int log_rows) {
  const auto rows = static_cast<unsigned>(launch.num_rows) + (1u << log_rows) - 1;
  return launch.num_pieces + (rows >> log_rows);
}
__device__ inline unsigned num_items(const RowsAttentionLaunch& launch) {
  return num_items(launch, launch.shape.log_groups());
}

/// From one lane, so that the compiler knows that all lanes of a warp go the same way, and makes no
/// second copy of every exchange between lanes for the case that they do not.
__device__ inline unsigned warp_of_grid() {
  return blockIdx.x * rows_attention_warps + __shfl_sync(~0u, threadIdx.x / 32, 0);
}

__device__ inline unsigned num_warps() { return gridDim.x * rows_attention_warps; }

/// Sorts a number of each lane, the largest first.
__device__ inline unsigned sorted_over_warp(unsigned number) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned size = 2; size <= 32; size *= 2) {
#pragma unroll
    for (unsigned distance = size / 2; distance >= 1; distance /= 2) {
      const unsigned other = __shfl_xor_sync(~0u, number, distance);
      const bool takes_larger = ((lane & distance) == 0) == ((lane & size) == 0);
      number = takes_larger ? max(number, other) : min(number, other);
    }
  }
  return number;
}

/// Up to 32 neighbouring rows. Where they are more than a warp has groups, lane i has the i-th
/// longest of them.
class ShortRows {
 public:
  __device__ void load(const RowsAttentionLaunch& launch, unsigned first) {
    const unsigned lane = threadIdx.x % 32;
    EdgeOffset begin = 0;
    unsigned length = 0;  // and one more, so that 0 is none
    if (lane >> launch.log_item_rows == 0 &&
        first + lane < static_cast<unsigned>(launch.num_rows)) {
      begin = row_begin(launch.offsets, first + lane);
      const EdgeOffset count = row_begin(launch.offsets, first + lane + 1) - begin;
      if (count <= launch.short_row) length = static_cast<unsigned>(count) + 1;
    }
    first_ = static_cast<VertexId>(first);
    lengths_ = length * 32 + lane;
    if (launch.log_item_rows > launch.shape.log_groups()) lengths_ = sorted_over_warp(lengths_);
    begins_ = __shfl_sync(~0u, begin, static_cast<int>(lengths_ % 32));
  }
  __device__ void clear() { lengths_ = 0; }

  /// The row at a place of that order; none where no row is left.
  __device__ GroupEdges at(int place) const {
    const unsigned length = __shfl_sync(~0u, lengths_, place);
    GroupEdges edges;
    edges.begin = __shfl_sync(~0u, begins_, place);
    if (place >= 32 || length < 32) return edges;
    edges.row = first_ + static_cast<VertexId>(length % 32);
    edges.count = static_cast<int>(length / 32) - 1;
    edges.left = edges.count;
    edges.leads = true;
    return edges;
  }

 private:
  VertexId first_ = 0;
  unsigned lengths_ = 0;   ///< times 32, and which of the rows that is
  EdgeOffset begins_ = 0;  ///< of that row
};

/// The gathered vertices of a batch; of edges that do not exist, vertex 0.
template <int batch>
struct BatchVertices {
  VertexId ids[batch];

  __device__ static BatchVertices load(const VertexId* from, int left) {
    // One register pair, not a sum that is formed again for every edge.
    asm volatile("" : "+l"(from));
    BatchVertices vertices;
#pragma unroll
    for (int u = 0; u < batch; ++u) vertices.ids[u] = u < left ? __ldg(from + u) : 0;
    return vertices;
  }
};

/// Adds each of some numbers over the groups of a warp.
template <int size>
__device__ void add_over_groups(const LaneShape& shape, float (&sums)[size]) {
  for (int distance = shape.lanes; distance < 32; distance *= 2) {
#pragma unroll
    for (float& sum : sums) sum += __shfl_xor_sync(~0u, sum, distance);
  }
}

/// Whether this warp is the last one of its row's pieces: true for all of its lanes.
__device__ inline bool is_last_piece(const RowsAttentionLaunch& launch, const RowPiece& piece) {
  unsigned* const counter =
      launch.num_done + std::size_t{blockIdx.y} * launch.num_cut_rows + piece.cut_row;
  return cuda::is_last_warp(counter, static_cast<unsigned>(piece.num_slots));
}

/// All rows of a warp, by a `Row` that has
///   batch                      edges at once
///   wants_edges()              whether there is anything to do with them
///   begin(edges)               a row
///   draw(position of the first edge, edges that exist)
///                              the random numbers of a batch
///   step<whole>(edges that exist, vertices)
///                              a batch; unless `whole` some groups may have fewer edges than that,
///                              or none
///   finish(edges)              after the last one
///   join_groups()              what the groups of a warp found of one row
///   store(edges)               the results of a row
///   store_piece, join_pieces   the same of rows that are cut
/// What it reads of the graph for the warp's first rows it reads when it is made.
template <class Row>
class RowWalk {
  static constexpr int batch = Row::batch;

 public:
  __device__ explicit RowWalk(const RowsAttentionLaunch& launch)
      : launch_(launch),
        item_(warp_of_grid()),
        group_(static_cast<int>(threadIdx.x) % 32 >> launch.shape.log_lanes) {
    if (has_item()) look();
  }

  __device__ bool has_item() const { return item_ < num_items(launch_, launch_.log_item_rows); }

  __device__ void go(Row& row) {
    const int groups = launch_.shape.groups();
    while (has_item()) {
#pragma unroll 1
      for (int place = group_ + groups; __any_sync(~0u, edges_.row >= 0); place += groups) {
        take_edges(row, place);
        bool stores = edges_.row >= 0;
        if (is_piece()) stores = settle_piece(row);
        if (stores) row.store(edges_);
        edges_ = rows_.at(place);
      }
      item_ += num_warps();
      if (has_item()) look();
    }
  }

 private:
  __device__ bool is_piece() const { return ops::is_piece(launch_, item_); }
  __device__ RowPiece piece() const { return piece_of(launch_, item_); }

  __device__ void look() {
    if (is_piece()) {
      const RowPiece found = piece();
      edges_.row = found.row;
      edges_.count = found.count;
      edges_.begin = found.begin + group_ * batch;
      edges_.left = found.count - group_ * batch;
      edges_.leads = group_ == 0 && (found.slot < 0 || found.slot == found.first_slot);
      rows_.clear();
    } else {
      rows_.load(launch_, (item_ - launch_.num_pieces) << launch_.log_item_rows);
      edges_ = rows_.at(group_);
    }
    next_ = BatchVertices<batch>::load(launch_.indices + edges_.begin, edges_.left);
  }

  /// The vertices of the next batch, or of the first of the row at `next_place`, are on their way
  /// while the features of this one are.
  __device__ void take_edges(Row& row, int next_place) {
    row.begin(edges_);
    if (!row.wants_edges()) return;
    // Edges from one batch of the group to the next.
    const int turn = is_piece() ? launch_.shape.groups() * batch : batch;
    EdgeOffset position = edges_.begin;
    int left = edges_.left;
    bool more;
    do {
      const BatchVertices<batch> vertices = next_;
      more = __any_sync(~0u, left > turn) != 0;
      EdgeOffset next = position + turn;
      int next_left = left - turn;
      if (!more) {
        const GroupEdges after = rows_.at(next_place);
        next = after.begin;
        next_left = after.left;
      }
      next_ = BatchVertices<batch>::load(launch_.indices + next, next_left);
      row.draw(position, left);
      if (__all_sync(~0u, left >= batch)) {
        row.template step<true>(batch, vertices);
      } else {
        row.template step<false>(left, vertices);
      }
      position += turn;
      left -= turn;
    } while (more);
    row.finish(edges_);
  }

  /// Whether this group is to store the row.
  __device__ bool settle_piece(Row& row) {
    row.join_groups();
    const RowPiece found = piece();
    if (found.slot >= 0) {
      if (group_ == 0) row.store_piece(found);
      if (!is_last_piece(launch_, found)) return false;
      row.join_pieces(found, group_);
    }
    return group_ == 0;
  }

  const RowsAttentionLaunch& launch_;
  unsigned item_;
  int group_;
  GroupEdges edges_;  ///< of the row that this lane's group has
  ShortRows rows_;    ///< of the item; none where it is a piece
  BatchVertices<batch> next_;
};

}  // namespace tessera::ops
