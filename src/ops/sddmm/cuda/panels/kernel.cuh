// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "ops/sddmm/cuda/group_sums.cuh"
#include "ops/sddmm/cuda/panels/launch.hpp"
#include "ops/sddmm/cuda/rows_ahead.cuh"

/// Dot products of both ends of every edge on CUDA cores, with rows of U in shared memory.
///
/// A block takes a piece of a panel (order.hpp). The rows of U of the panel's targets come to
/// shared memory, once for all edges of the piece. Edges are ordered by source; groups of lanes
/// take equal shares of them. The row of V of an edge comes from memory into registers and stays
/// there for all edges that follow with the same source, so that L2, which is what limits gathers,
/// gives a row of V once for a panel instead of once for an edge.
///
///     shared memory   targets 0 1 2 3 4 5 ...                  once for a piece
///     edges           a1 a4 a5 | b0 | c2 c3 | d0 d1 d5 ...      sources a to d, once each
namespace tessera::ops {

/// The edges of one step of a group. A lane has one of them.
struct PanelStep {
  PanelEdge edge;
  unsigned changes = 0;  ///< bit e: edge e has another source than the edge before
};

/// What a group of lanes does along its share of a piece.
template <PanelPolicy policy, class T>
class PanelGroup {
 public:
  using Row = RowShare<T, policy.lanes, policy.vectors>;

  __device__ PanelGroup(const PanelsLaunch& launch, const PanelPiece& piece, const uint4* targets)
      : order_(launch.order + piece.first_edge),
        last_edge_(piece.num_edges - 1),
        lane_(static_cast<int>(threadIdx.x) % policy.lanes),
        targets_(targets + lane_),
        v_(static_cast<const char*>(launch.v) + lane_ * 16),
        v_bytes_(static_cast<std::uint32_t>(launch.v_stride * sizeof(T))) {}

  /// The edges from `first` on; past the last of the piece, the last.
  __device__ PanelEdge asked(int first) const {
    const int edge = min(first + lane_ % panel_step_edges, last_edge_);
    const uint2 raw = __ldcs(reinterpret_cast<const uint2*>(order_) + edge);
    return {static_cast<VertexId>(raw.x), raw.y};
  }

  /// The same edges, which follow one of this source.
  __device__ PanelStep step(const PanelEdge& edge, VertexId before) const {
    return {edge, changes_of_step<panel_step_edges>(edge.source, before, lane_)};
  }
  __device__ static VertexId last_source(const PanelEdge& edge) {
    return __shfl_sync(~0u, edge.source, panel_step_edges - 1, policy.lanes);
  }

  /// Asks for the row of V of edge e of a step; that and `slot` are known when compiled.
  __device__ void ask(int slot, const PanelStep& step, int e) {
    const VertexId source = __shfl_sync(~0u, step.edge.source, e, policy.lanes);
    if ((step.changes >> e & 1) != 0) ahead_[slot].load(v_, source, v_bytes_);
  }

  /// What this lane's features add to the dot product of the edge asked for in `slot`.
  __device__ float multiply(int slot, const PanelStep& step, int e) {
    const unsigned target =
        __shfl_sync(~0u, step.edge.target_and_place, e, policy.lanes) >> panel_place_bits;
    if ((step.changes >> e & 1) != 0) ahead_[slot].widen_to(held_);
    const uint4* const row = targets_ + target * (policy.row_bytes() / 16);
    return share_of_dot(held_,
                        [&](int k) { return typename Row::FeatureVector{row[k * policy.lanes]}; });
  }

  __device__ int lane() const { return lane_; }

 private:
  const PanelEdge* order_;
  int last_edge_;
  int lane_;
  const uint4* targets_;
  const char* v_;
  std::uint32_t v_bytes_;
  Row ahead_[policy.depth];
  typename Row::Features held_;  ///< of the source of the edge before
};

/// The policy comes in its parts: nvcc 13.0 cannot name a kernel by a class value.
template <int lanes, int vectors, int depth, class T>
__global__ __launch_bounds__(panel_block_threads,
                             panel_blocks) void panel_dots(const PanelsLaunch launch) {
  constexpr PanelPolicy policy = {lanes, vectors, depth};
  constexpr int row_vectors = lanes * vectors;
  constexpr int step_edges = panel_block_threads / lanes * panel_step_edges;
  extern __shared__ uint4 targets[];
  cuda::let_next_begin();
  const PanelPiece piece = launch.pieces[blockIdx.x];
  const int run = (piece.num_edges + step_edges - 1) / step_edges * panel_step_edges;
  const int begin = static_cast<int>(threadIdx.x) / lanes * run;
  PanelGroup<policy, T> group(launch, piece, targets);
  const PanelEdge first = group.asked(begin), second = group.asked(begin + panel_step_edges);
  PanelStep now = group.step(first, -1);
  PanelStep next = group.step(second, group.last_source(first));
  cuda::wait_for_previous();
  const std::uint32_t shared = cuda::shared_address(targets);
  for (int i = static_cast<int>(threadIdx.x); i < piece.num_rows * row_vectors;
       i += panel_block_threads) {
    const std::int64_t row = piece.first_row + i / row_vectors;
    cuda::copy_16_async(shared + i * 16, static_cast<const T*>(launch.u) + row * launch.u_stride +
                                             i % row_vectors * (16 / sizeof(T)));
  }
  cuda::commit_copies();
#pragma unroll
  for (int e = 0; e < depth; ++e) group.ask(e, now, e);
  cuda::wait_for_copies<0>();
  __syncthreads();
#pragma unroll 1
  for (int done = 0; done < run; done += panel_step_edges) {
    const PanelEdge after = group.asked(begin + done + 2 * panel_step_edges);
    float sums[panel_step_edges];
    multiply_step<depth>(group, now, next, done + panel_step_edges < run, sums);
    const float sum = group_sum<lanes>(sums, group.lane());
    constexpr int lanes_of_edge = lanes / panel_step_edges;
    const int e = group.lane() / lanes_of_edge;
    const std::uint32_t place =
        __shfl_sync(~0u, now.edge.target_and_place, e, lanes) & ((1u << panel_place_bits) - 1);
    if (group.lane() % lanes_of_edge == 0 && begin + done + e < piece.num_edges) {
      static_cast<T*>(launch.edges)[(piece.first_place + place) * launch.edges_stride] =
          cuda::narrow<T>(sum);
    }
    const VertexId before = group.last_source(next.edge);
    now = next;
    next = group.step(after, before);
  }
}

template <PanelPolicy policy, class T>
PanelsKernel make_panels_kernel() {
  static constexpr auto kernel = panel_dots<policy.lanes, policy.vectors, policy.depth, T>;
  return {[](int rows) {
            cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            rows * policy.row_bytes()),
                       "asking for shared memory");
          },
          [](const PanelsLaunch& launch, Stream stream) {
            cuda::launch_overlapped(
                kernel, dim3(cuda::num_blocks(launch.num_pieces, 1)), panel_block_threads,
                static_cast<std::size_t>(launch.rows) * policy.row_bytes(), stream, launch);
          }};
}

template <Precision precision>
std::span<const PanelsKernel> PanelsKernels<precision>::all() {
  static const auto kernels = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{make_panels_kernel<panel_policies[i], cuda::Stored<precision>>()...};
  }
  (std::make_index_sequence<panel_policies.size()>{});
  return kernels;
}

}  // namespace tessera::ops
