// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/edge_rows.cuh"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/edges/launch.hpp"
#include "ops/sddmm/cuda/group_sums.cuh"

/// Dot products of both ends of every edge on CUDA cores, with rows always in flight.
///
/// A group of lanes goes along a run of consecutive edges in steps, of which each lane knows one
/// edge, and asks for the rows of an edge `stream_depth` edges before it multiplies them, those of
/// the next step among them: no load waits for the lanes to add up what they hold. A row of U that
/// the edge before has, too, is not asked for again. Edges are counted with 31 bits, since
/// registers are what limits how many rows are in flight.
namespace tessera::ops {

static_assert(stream_edges == stream_lanes, "a lane has one edge of a step");
static_assert(cuda::edges_per_tile % stream_edges == 0, "a step has one tile of targets");

/// The ends of the edges of one step. A lane has those of one edge.
struct StepEnds {
  VertexId target = 0;
  VertexId source = 0;
  /// Bit e: edge e has another target than the edge before, or is the first of its tile, of which
  /// the tile does not say that.
  unsigned changes = 0;

  __device__ bool changes_at(int e) const { return (changes >> e & 1) != 0; }
};

/// What says who the ends of an edge are, in flight.
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
template <class T>
class RowStream {
 public:
  __device__ RowStream(const EdgesLaunch& launch, int lane) : launch_(launch), lane_(lane) {}

  /// Asks for the rows of edge e of a step; that and `slot` are known when compiled.
  __device__ void ask(int slot, const StepEnds& step, int e) {
    const VertexId source = __shfl_sync(~0u, step.source, e, stream_lanes);
    const VertexId target = __shfl_sync(~0u, step.target, e, stream_lanes);
    load(launch_.gathered, source, gathered_[slot]);
    if (step.changes_at(e)) load(launch_.kept, target, kept_[slot]);
  }

  /// What this lane's features add to the dot product of the edge asked for in `slot`.
  __device__ float multiply(int slot, const StepEnds& step, int e) {
    if (step.changes_at(e)) {
#pragma unroll
      for (int k = 0; k < stream_vectors; ++k) kept_[slot][k].widen_to(held_[k]);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < stream_vectors; ++k) {
      float values[FeatureVector::count];
      gathered_[slot][k].widen_to(values);
#pragma unroll
      for (int i = 0; i < FeatureVector::count; ++i) sum = fmaf(held_[k][i], values[i], sum);
    }
    return sum;
  }

 private:
  using FeatureVector = cuda::Vector<T, 16>;
  using Row = FeatureVector[stream_vectors];  ///< a lane's share

  __device__ void load(const EdgeEnd& end, VertexId row, Row& share) const {
    const auto row_bytes = static_cast<std::uint32_t>(end.stride * sizeof(T));
    const char* const from =
        static_cast<const char*>(end.features) + lane_ * 16 +
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * row_bytes;
    // Plain loads: read-only ones may be moved to before the wait for the kernel that writes them.
#pragma unroll
    for (int k = 0; k < stream_vectors; ++k) {
      share[k].raw =
          *reinterpret_cast<const typename FeatureVector::Raw*>(from + k * stream_lanes * 16);
    }
  }

  const EdgesLaunch& launch_;
  int lane_;
  Row gathered_[stream_depth];
  Row kept_[stream_depth];  ///< of edges that change the target
  float held_[stream_vectors][FeatureVector::count];
};

template <class T>
__global__ __launch_bounds__(stream_block_threads,
                             sizeof(T) == 4 ? 7 : 5) void edge_stream(const EdgesLaunch launch) {
  cuda::let_next_begin();
  const int lane = static_cast<int>(threadIdx.x) % stream_lanes;
  const int run = launch.tiles_per_warp * stream_edges;
  const int num_edges = static_cast<int>(launch.num_edges);
  const int warp = static_cast<int>(blockIdx.x * (stream_block_threads / 32) + threadIdx.x / 32);
  // The groups of a warp meet in shuffles, so that all of them stay for as long as the first.
  const std::int64_t of_warp = std::int64_t{warp} * (32 / stream_lanes) * run;
  if (of_warp >= num_edges) return;
  const int begin = static_cast<int>(min(
      std::int64_t{num_edges}, of_warp + static_cast<int>(threadIdx.x) % 32 / stream_lanes * run));
  const int end = static_cast<int>(min(std::int64_t{num_edges}, std::int64_t{begin} + run));
  // Past the last edge, the last.
  const auto edge_of = [&](int step) { return min(begin + step + lane, num_edges - 1); };
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
  RowStream<T> stream(launch, lane);
#pragma unroll
  for (int e = 0; e < stream_depth; ++e) stream.ask(e, now, e);
#pragma unroll 1
  for (int step = 0; step < run; step += stream_edges) {
    const AskedEnds after = asked_of(step + 2 * stream_edges);
    float sums[stream_edges];
#pragma unroll
    for (int e = 0; e < stream_edges; ++e) {
      const int slot = e % stream_depth;
      sums[e] = stream.multiply(slot, now, e);
      if (e + stream_depth < stream_edges) {
        stream.ask(slot, now, e + stream_depth);
      } else if (step + stream_edges < run) {
        stream.ask(slot, next, e + stream_depth - stream_edges);
      }
    }
    const float sum = group_sum<stream_lanes>(sums, lane);
    const int edge = begin + step + lane;
    if (edge < end) {
      static_cast<T*>(launch.edges)[edge * launch.edges_stride] = cuda::narrow<T>(sum);
    }
    now = next;
    next = ends_of(step + 2 * stream_edges, after);
  }
}

template <Precision precision>
EdgesFunction EdgeStream<precision>::get() {
  return [](const EdgesLaunch& launch, Stream stream) {
    const std::int64_t edges_per_block =
        std::int64_t{stream_block_threads / stream_lanes} * stream_edges * launch.tiles_per_warp;
    cuda::launch_overlapped(edge_stream<cuda::Stored<precision>>,
                            dim3(cuda::num_blocks(launch.num_edges, edges_per_block)),
                            stream_block_threads, stream, launch);
  };
}

}  // namespace tessera::ops
