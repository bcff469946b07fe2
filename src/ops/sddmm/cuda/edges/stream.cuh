// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/edge_rows.cuh"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "ops/sddmm/cuda/edges/launch.hpp"
#include "ops/sddmm/cuda/group_sums.cuh"
#include "ops/sddmm/cuda/rows_ahead.cuh"

/// Dot products of both ends of every edge on CUDA cores, with rows always on their way.
///
/// A group of lanes goes along a run of consecutive edges, `stream_edges` at each step, with rows
/// of the next `depth` edges ahead (rows_ahead.cuh), so that no load waits for the lanes to add up
/// what they hold. Edges are counted with 31 bits, since registers are what limits how many rows
/// are on their way.
namespace tessera::ops {

static_assert(cuda::edges_per_tile % stream_edges == 0, "a step has one tile of targets");

/// The ends of the edges of one step. A lane has those of one edge.
struct StepEnds {
  VertexId target = 0;
  VertexId source = 0;
  /// Bit e: edge e has another target than the edge before, or is the first of its tile, of which
  /// the tile does not say that.
  unsigned changes = 0;
};

/// What says who the ends of an edge are, on its way.
struct AskedEnds {
  uint2 tile;
  VertexId source;

  __device__ AskedEnds(const EdgesLaunch& launch, int edge)
      : tile(cuda::ask_for_row(launch.edge_rows, edge)), source(__ldcs(launch.indices + edge)) {}

  /// The same edge, and the first of its step.
  __device__ StepEnds ends(const EdgesLaunch& launch, int edge, int first) const {
    const auto place = static_cast<unsigned>(first) % cuda::edges_per_tile;
    return {cuda::row_of_edge(launch.edge_rows, edge, tile), source,
            tile.y >> place | static_cast<unsigned>(place == 0)};
  }
};

/// The rows of the edges ahead, and the one of U that is being multiplied.
template <StreamPolicy policy, class T>
class RowStream {
 public:
  __device__ RowStream(const EdgesLaunch& launch, int lane) : launch_(launch), lane_(lane) {}

  /// Asks for the rows of edge e of a step; that and `slot` are known when compiled.
  __device__ void ask(int slot, const StepEnds& step, int e) {
    const VertexId source = __shfl_sync(~0u, step.source, e, policy.lanes);
    const VertexId target = __shfl_sync(~0u, step.target, e, policy.lanes);
    load(launch_.gathered, source, gathered_[slot]);
    if ((step.changes >> e & 1) != 0) load(launch_.kept, target, kept_[slot]);
  }

  /// What this lane's features add to the dot product of the edge asked for in `slot`.
  __device__ float multiply(int slot, const StepEnds& step, int e) {
    if ((step.changes >> e & 1) != 0) kept_[slot].widen_to(held_);
    return share_of_dot(held_, [&](int k) { return gathered_[slot].of[k]; });
  }

 private:
  using Row = RowShare<T, policy.lanes, policy.vectors>;

  __device__ void load(const EdgeEnd& end, VertexId row, Row& share) const {
    share.load(static_cast<const char*>(end.features) + lane_ * 16, row,
               static_cast<std::uint32_t>(end.stride * sizeof(T)));
  }

  const EdgesLaunch& launch_;
  int lane_;
  Row gathered_[policy.depth];
  Row kept_[policy.depth];  ///< of edges that change the target
  typename Row::Features held_;
};

/// The policy comes in its parts: nvcc 13.0 cannot name a kernel by a class value.
template <int lanes, int vectors, int depth, int blocks, class T>
__global__ __launch_bounds__(stream_block_threads,
                             blocks) void edge_stream(const EdgesLaunch launch) {
  constexpr StreamPolicy policy = {lanes, vectors, depth};
  constexpr int groups_of_warp = 32 / lanes;
  cuda::let_next_begin();
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int run = launch.tiles_per_warp * stream_edges;
  const int num_edges = static_cast<int>(launch.num_edges);
  const int warp = static_cast<int>(blockIdx.x * (stream_block_threads / 32) + threadIdx.x / 32);
  // The groups of a warp meet in shuffles, so that all of them stay for as long as the first.
  const std::int64_t of_warp = std::int64_t{warp} * groups_of_warp * run;
  if (of_warp >= num_edges) return;
  const int begin = static_cast<int>(
      min(std::int64_t{num_edges}, of_warp + static_cast<int>(threadIdx.x) % 32 / lanes * run));
  const int end = static_cast<int>(min(std::int64_t{num_edges}, std::int64_t{begin} + run));
  const int place = lane % stream_edges;
  // Past the last edge, the last.
  const auto edge_of = [&](int step) { return min(begin + step + place, num_edges - 1); };
  const auto asked_of = [&](int step) { return AskedEnds(launch, edge_of(step)); };
  const auto ends_of = [&](int step, const AskedEnds& asked) {
    return asked.ends(launch, edge_of(step), begin + step);
  };
  // Ends are asked for two steps before they are looked at.
  const AskedEnds first = asked_of(0), second = asked_of(stream_edges);
  StepEnds now = ends_of(0, first);
  now.changes |= 1;
  StepEnds next = ends_of(stream_edges, second);
  cuda::wait_for_previous();
  RowStream<policy, T> stream(launch, lane);
#pragma unroll
  for (int e = 0; e < depth; ++e) stream.ask(e, now, e);
#pragma unroll 1
  for (int step = 0; step < run; step += stream_edges) {
    const AskedEnds after = asked_of(step + 2 * stream_edges);
    float sums[stream_edges];
    multiply_step<depth>(stream, now, next, step + stream_edges < run, sums);
    const float sum = group_sum<lanes>(sums, lane);
    constexpr int lanes_of_edge = lanes / stream_edges;
    const int edge = begin + step + lane / lanes_of_edge;
    if (lane % lanes_of_edge == 0 && edge < end) {
      static_cast<T*>(launch.edges)[edge * launch.edges_stride] = cuda::narrow<T>(sum);
    }
    now = next;
    next = ends_of(step + 2 * stream_edges, after);
  }
}

template <StreamPolicy policy, class T>
void launch_edge_stream(const EdgesLaunch& launch, Stream stream) {
  constexpr int blocks = sizeof(T) == 4 ? policy.blocks : policy.half_blocks;
  const std::int64_t edges_per_block =
      std::int64_t{stream_block_threads / policy.lanes} * stream_edges * launch.tiles_per_warp;
  cuda::launch_overlapped(edge_stream<policy.lanes, policy.vectors, policy.depth, blocks, T>,
                          dim3(cuda::num_blocks(launch.num_edges, edges_per_block)),
                          stream_block_threads, stream, launch);
}

template <Precision precision>
std::span<const EdgesFunction> EdgeStreams<precision>::all() {
  static constexpr auto functions = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{
        EdgesFunction{launch_edge_stream<stream_policies[i], cuda::Stored<precision>>}...};
  }
  (std::make_index_sequence<stream_policies.size()>{});
  return functions;
}

}  // namespace tessera::ops
