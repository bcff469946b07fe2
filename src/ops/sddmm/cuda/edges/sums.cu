// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/kernel.cuh"

namespace tessera::ops {
namespace {

template <class T>
__device__ float number_at(const EdgeEnd& end, std::int64_t vertex, std::int64_t head) {
  return cuda::widen(static_cast<const T*>(end.features)[vertex * end.stride + head]);
}

/// A warp takes 32 edges; its lanes go over their edges x heads numbers in the order in which they
/// are stored.
template <class T>
__global__ __launch_bounds__(edges_block_threads) void edge_sums(const EdgesLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t warp = (std::int64_t{blockIdx.x} * edges_block_threads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const EdgeOffset begin = warp * 32;
  if (begin >= launch.num_edges) return;
  const EdgeEnds ends(launch, begin + lane);
  const float own_scale = ends.scale(launch);
  const auto heads = static_cast<std::uint32_t>(launch.heads);
  auto number = static_cast<std::uint32_t>(lane);
  for (std::uint32_t done = 0; done < heads; ++done, number += 32) {
    const auto place = static_cast<int>(number / heads);
    const auto head = static_cast<std::int64_t>(number % heads);
    const VertexId row = __shfl_sync(~0u, ends.kept, place);
    const VertexId col = __shfl_sync(~0u, ends.gathered, place);
    const float scale = __shfl_sync(~0u, own_scale, place);
    const EdgeOffset edge = begin + place;
    if (edge >= launch.num_edges) continue;
    const float u = number_at<T>(launch.kept, row, head);
    const float v = number_at<T>(launch.gathered, col, head);
    static_cast<T*>(launch.edges)[edge * launch.edges_stride + head] =
        cuda::narrow<T>((u + v) * scale);
  }
}

template <class T>
void launch_edge_sums(const EdgesLaunch& launch, Stream stream) {
  cuda::launch_overlapped(edge_sums<T>,
                          dim3(cuda::num_blocks(launch.num_edges, edges_block_threads)),
                          edges_block_threads, stream, launch);
}

}  // namespace

template <Precision precision>
EdgesFunction EdgeSumsKernel<precision>::get() {
  return launch_edge_sums<cuda::Stored<precision>>;
}

template struct EdgeSumsKernel<Precision::fp32>;
template struct EdgeSumsKernel<Precision::bf16>;
template struct EdgeSumsKernel<Precision::fp16>;

}  // namespace tessera::ops
