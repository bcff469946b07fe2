// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/group_sums.cuh"
#include "ops/sddmm/cuda/lists/launch.hpp"

/// Dot products of both ends of every edge on CUDA cores, as a list tells them.
///
/// The list has both ends of every edge, so that a warp knows the rows of its first tile after one
/// load. Eight lanes take four edges: a line of both rows of each, all asked for at once, then the
/// next line. One block fills a processor and goes along its share of consecutive edges, tile by
/// tile; what neighbouring edges have in common is then found in the first-level cache, and there
/// are few blocks to start.
///
///     share of a block   | warp 0 | warp 1 | ... | warp 31 | warp 0 | ...     tiles of 16 edges
///     a tile             | lanes 0-7: edges 0-3 | lanes 8-15: edges 4-7 | ...
namespace tessera::ops {

/// One end of the edges of a group.
struct GroupEnds {
  VertexId of[list_edges];

  __device__ void load(const ListedEnd& end, int first) {
    static_assert(list_edges == 4 && sizeof(VertexId) == 4);
    // Not a read-only load, which the compiler may move to behind the wait.
    const int4 four = __ldcs(reinterpret_cast<const int4*>(end.vertices + first));
    of[0] = four.x, of[1] = four.y, of[2] = four.z, of[3] = four.w;
  }
  /// Whether edge e has another vertex than the one before.
  __device__ bool changes(int e) const { return e == 0 || of[e] != of[e - 1]; }
};

/// A line of the rows of one end.
template <class T>
class EndLine {
 public:
  /// `at` is where a lane's part of the line lies in a row.
  __device__ EndLine(const ListedEnd& end, std::uint32_t at)
      : features_(static_cast<const char*>(end.features)),
        row_bytes_(static_cast<std::uint32_t>(end.stride * sizeof(T))),
        at_(at) {
    // Where rows begin is computed for each line anew: kept, that would take the registers of what
    // is loaded, and the last rows would be asked for when the first have come.
    asm volatile("" : "+r"(row_bytes_));
  }

  __device__ cuda::Vector<T, 16> of(VertexId row) const {
    const std::uint64_t from =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * row_bytes_ + at_;
    // A plain load: a read-only one may be moved to before the wait for the kernel that writes it.
    return {*reinterpret_cast<const uint4*>(features_ + from)};
  }

 private:
  const char* features_;
  std::uint32_t row_bytes_;
  std::uint32_t at_;
};

template <class T>
__device__ void add_products(const cuda::Vector<T, 16>& a, const cuda::Vector<T, 16>& b,
                             float& sum) {
  float of_a[cuda::Vector<T, 16>::count], of_b[cuda::Vector<T, 16>::count];
  a.widen_to(of_a);
  b.widen_to(of_b);
#pragma unroll
  for (int i = 0; i < cuda::Vector<T, 16>::count; ++i) sum = fmaf(of_a[i], of_b[i], sum);
}

template <class T>
__global__ __launch_bounds__(list_block_threads, 1) void listed_dots(const ListLaunch launch) {
  cuda::let_next_begin();
  constexpr int round =
      list_block_threads / 32 * list_tile;  // what the warps of a block take at once
  const unsigned lane = threadIdx.x % list_lanes;
  const int share_begin = static_cast<int>(blockIdx.x) * launch.share;
  const int share_end = min(launch.num_edges, share_begin + launch.share);
  int tile = share_begin + static_cast<int>(threadIdx.x / 32 * list_tile);
  if (tile >= share_end) return;
  const int group = static_cast<int>(threadIdx.x % 32 / list_lanes * list_edges);
  GroupEnds kept, gathered;
  kept.load(launch.kept, tile + group);
  gathered.load(launch.gathered, tile + group);
  cuda::wait_for_previous();
  while (true) {
    const int next_tile = tile + round;
    GroupEnds next_kept, next_gathered;
    if (next_tile < share_end) {
      next_kept.load(launch.kept, next_tile + group);
      next_gathered.load(launch.gathered, next_tile + group);
    }
    float sums[list_edges] = {};
    // Not unrolled: the loads of later lines would take the registers of other warps.
#pragma unroll 1
    for (std::uint32_t at = lane * 16; at < launch.row_bytes; at += list_line_bytes) {
      const EndLine<T> kept_line(launch.kept, at), gathered_line(launch.gathered, at);
      cuda::Vector<T, 16> a[list_edges], b[list_edges];
#pragma unroll
      for (int e = 0; e < list_edges; ++e) b[e] = gathered_line.of(gathered.of[e]);
#pragma unroll
      for (int e = 0; e < list_edges; ++e) {
        if (kept.changes(e)) a[e] = kept_line.of(kept.of[e]);
      }
      cuda::Vector<T, 16> held;
#pragma unroll
      for (int e = 0; e < list_edges; ++e) {
        if (kept.changes(e)) held = a[e];
        add_products<T>(held, b[e], sums[e]);
      }
    }
    const float sum = group_sum<list_lanes>(sums, static_cast<int>(lane));
    constexpr int lanes_of_edge = list_lanes / list_edges;
    int place = tile + group + static_cast<int>(lane / lanes_of_edge);
    if (lane % lanes_of_edge == 0 && place < launch.num_edges) {
      if (launch.places != nullptr) place = __ldg(launch.places + place);
      static_cast<T*>(launch.edges)[place * launch.edges_stride] = cuda::narrow<T>(sum);
    }
    if (next_tile >= share_end) return;
    tile = next_tile;
    kept = next_kept;
    gathered = next_gathered;
  }
}

template <Precision precision>
ListFunction ListKernel<precision>::get() {
  return [](const ListLaunch& launch, Stream stream) {
    cuda::launch_overlapped(listed_dots<cuda::Stored<precision>>,
                            dim3(cuda::num_blocks(launch.num_edges, launch.share)),
                            list_block_threads, stream, launch);
  };
}

}  // namespace tessera::ops
