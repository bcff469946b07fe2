// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/group_sums.cuh"
#include "ops/sddmm/cuda/lists/launch.hpp"

/// Dot products by a list, with rows always on their way.
///
/// Sixteen lanes take eight edges at each step, those of a block side by side. While a group
/// multiplies the rows of one edge, those of the next two are on their way, edges of its next step
/// among them. A row that the edge before has, too, is not asked for again.
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
  using FeatureVector = cuda::Vector<T, 16>;
  static constexpr int count = FeatureVector::count;

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
    const VertexId previous = __shfl_up_sync(~0u, step.kept, 1, ahead_edges);
    const bool first = lane_ % ahead_edges == 0;
    const unsigned changed = __ballot_sync(~0u, step.kept != (first ? before : previous));
    step.changes = changed >> (threadIdx.x % 32 - lane_);
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
    if ((step.changes >> e & 1) != 0) {
#pragma unroll
      for (int k = 0; k < ahead_vectors; ++k) kept_[slot][k].widen_to(held_[k]);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < ahead_vectors; ++k) {
      float values[count];
      gathered_[slot][k].widen_to(values);
#pragma unroll
      for (int i = 0; i < count; ++i) sum = fmaf(held_[k][i], values[i], sum);
    }
    return sum;
  }

 private:
  using Row = FeatureVector[ahead_vectors];

  __device__ void load(const ListedEnd& end, VertexId row, Row& vectors) const {
    const auto row_bytes = static_cast<std::uint32_t>(end.stride * sizeof(T));
    const char* const from =
        static_cast<const char*>(end.features) + lane_ * 16 +
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * row_bytes;
    // Plain loads: read-only ones may be moved to before the wait for the kernel that writes them.
#pragma unroll
    for (int k = 0; k < ahead_vectors; ++k) {
      vectors[k].raw = *reinterpret_cast<const uint4*>(from + k * ahead_lanes * 16);
    }
  }

  const ListLaunch& launch_;
  int lane_;
  Row gathered_[ahead_depth];
  Row kept_[ahead_depth];  ///< of edges that change the kept end
  float held_[ahead_vectors][count];
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
#pragma unroll
    for (int e = 0; e < ahead_edges; ++e) {
      const int slot = e % ahead_depth;
      sums[e] = group.multiply(slot, now, e);
      if (e + ahead_depth < ahead_edges) {
        group.ask(slot, now, e + ahead_depth);
      } else if (step + round < share_end) {
        group.ask(slot, next, e + ahead_depth - ahead_edges);
      }
    }
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
