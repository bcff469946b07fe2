// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "ops/sddmm/cuda/group_sums.cuh"
#include "ops/sddmm/cuda/lists/launch.hpp"
#include "ops/sddmm/cuda/rows_ahead.cuh"

/// Dot products by a list, with rows always on their way.
///
/// Sixteen lanes take eight edges at each step, those of a block side by side, with the rows of two
/// edges ahead (rows_ahead.cuh).
///
///     share of a block   | group 0 | group 1 | ... | group 27 | group 0 | ...   steps of 8 edges
namespace tessera::ops {

/// The ends of the edges of one step. A lane has those of one edge.
struct AheadStep {
  VertexId kept = 0;
  VertexId gathered = 0;
  unsigned changes = 0;  ///< bit e: edge e has another kept end than the edge before
};

/// What a group of lanes does along its steps.
template <class T>
class AheadGroup {
 public:
  __device__ explicit AheadGroup(const ListLaunch& launch)
      : launch_(launch), lane_(static_cast<int>(threadIdx.x) % ahead_lanes) {}

  __device__ int lane() const { return lane_; }

  /// The edges from `first` on, which follow one of this kept end; past the last edge, the last.
  __device__ AheadStep step(int first, VertexId before) const {
    return with_changes(asked(first), before);
  }
  __device__ AheadStep asked(int first) const {
    const int edge = min(first + lane_ % ahead_edges, launch_.num_edges - 1);
    return {__ldcs(launch_.kept.vertices + edge), __ldcs(launch_.gathered.vertices + edge)};
  }
  __device__ AheadStep with_changes(AheadStep step, VertexId before) const {
    step.changes = changes_of_step<ahead_edges>(step.kept, before, lane_);
    return step;
  }
  __device__ static VertexId last_kept(const AheadStep& step) {
    return __shfl_sync(~0u, step.kept, ahead_edges - 1, ahead_lanes);
  }

  /// Asks for the rows of edge e of a step; that and `slot` are known when compiled.
  __device__ void ask(int slot, const AheadStep& step, int e) {
    const VertexId gathered = __shfl_sync(~0u, step.gathered, e, ahead_lanes);
    const VertexId kept = __shfl_sync(~0u, step.kept, e, ahead_lanes);
    load(launch_.gathered, gathered, gathered_[slot]);
    if ((step.changes >> e & 1) != 0) load(launch_.kept, kept, kept_[slot]);
  }

  /// What this lane's features add to the dot product of the edge asked for in `slot`.
  __device__ float multiply(int slot, const AheadStep& step, int e) {
    if ((step.changes >> e & 1) != 0) kept_[slot].widen_to(held_);
    return share_of_dot(held_, [&](int k) { return gathered_[slot].of[k]; });
  }

 private:
  using Row = RowShare<T, ahead_lanes, ahead_vectors>;

  __device__ void load(const ListedEnd& end, VertexId row, Row& share) const {
    share.load(static_cast<const char*>(end.features) + lane_ * 16, row,
               static_cast<std::uint32_t>(end.stride * sizeof(T)));
  }

  const ListLaunch& launch_;
  int lane_;
  Row gathered_[ahead_depth];
  Row kept_[ahead_depth];  ///< of edges that change the kept end
  typename Row::Features held_;
};

template <int block_threads, class T>
__global__ __launch_bounds__(block_threads,
                             896 / block_threads) void dots_ahead(const ListLaunch launch) {
  cuda::let_next_begin();
  constexpr int round = block_threads / ahead_lanes * ahead_edges;
  AheadGroup<T> group(launch);
  // All groups of a block take as many steps, since those of a warp meet in shuffles.
  const int share_begin = static_cast<int>(blockIdx.x) * launch.share;
  const int share_end = share_begin + launch.share;
  int first = share_begin + static_cast<int>(threadIdx.x) / ahead_lanes * ahead_edges;
  AheadStep now = group.step(first, -1);
  AheadStep next = group.step(first + round, group.last_kept(now));
  cuda::wait_for_previous();
#pragma unroll
  for (int e = 0; e < ahead_depth; ++e) group.ask(e, now, e);
#pragma unroll 1
  for (int step = share_begin; step < share_end; step += round, first += round) {
    const AheadStep after = group.asked(first + 2 * round);
    float sums[ahead_edges];
    multiply_step<ahead_depth>(group, now, next, step + round < share_end, sums);
    const float sum = group_sum<ahead_lanes>(sums, group.lane());
    constexpr int lanes_of_edge = ahead_lanes / ahead_edges;
    int place = first + group.lane() / lanes_of_edge;
    if (group.lane() % lanes_of_edge == 0 && place < launch.num_edges) {
      if (launch.places != nullptr) place = __ldg(launch.places + place);
      static_cast<T*>(launch.edges)[place * launch.edges_stride] = cuda::narrow<T>(sum);
    }
    const VertexId before = group.last_kept(next);
    now = next;
    next = group.with_changes(after, before);
  }
}

}  // namespace tessera::ops
