// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/launch.cuh"
#include "ops/spmm/cuda/gather.cuh"

/// Rows reduced on CUDA cores: gathered rows of X are added up, or compared, in registers.
///
/// Short rows belong to teams of lanes (policy.hpp), in the order of the graph, so that neighbours
/// in it find each other's rows of X in the cache. A row with more than `long_row` edges is left to
/// blocks: each takes a piece of it, its warps a quarter of the piece each. Where a row has several
/// pieces, the block that is done last puts their results together in order. The split depends on
/// the graph alone: same bits every time.
namespace tessera::ops {

/// The same team with as many edges at once as a warp holds: what a long row wants.
constexpr RowsPolicy whole_warp(RowsPolicy policy) {
  policy.edges = 32 / policy.lanes;
  return policy;
}

template <class T, class Reduction>
__device__ void store_element(const RowsLaunch& launch, const ReducedRow& at,
                              const typename Reduction::Element& element) {
  const typename Reduction::Element elements[1] = {element};
  float values[1];
  Reduction::finish(launch, at, elements, values);
  static_cast<T*>(launch.y)[at.row * launch.y_stride + at.feature] = cuda::narrow<T>(values[0]);
}

/// Whether all other pieces of a split row are in their slots; leaves the count ready for the next
/// run.
__device__ inline bool is_last_of(const RowsLaunch& launch, int split_row, int num_slots) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned& num_done = launch.num_done[std::int64_t{split_row} * gridDim.y + blockIdx.y];
    last = atomicAdd(&num_done, 1u) + 1 == static_cast<unsigned>(num_slots);
    if (last) num_done = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// In the order of the row's edges, whichever block does it.
template <class T, class Reduction>
__device__ void merge_slots(const RowsLaunch& launch, VertexId row, const SplitRow& split,
                            int first_feature, int num_features) {
  using Element = typename Reduction::Element;
  for (int i = static_cast<int>(threadIdx.x); i < num_features; i += rows_block_threads) {
    // Past L1, which may hold what was there before.
    const auto* slot = static_cast<const volatile Element*>(launch.slots) +
                       split.first_slot * launch.features + first_feature + i;
    Element whole = Reduction::none();
    for (int k = 0; k < split.num_slots; ++k, slot += launch.features) {
      Reduction::merge(whole, Reduction::read(slot));
    }
    store_element<T, Reduction>(launch, {row, first_feature + i}, whole);
  }
}

template <RowsPolicy policy, class T, bool aligned, class Reduction>
__device__ void reduce_long_piece(const RowsLaunch& launch, const LongPiece& piece,
                                  int first_vector) {
  using Gather = TeamGather<whole_warp(policy), T, aligned, Reduction>;
  using Element = typename Reduction::Element;
  constexpr int features = policy.lanes * Gather::width;
  Gather gather(launch, piece.row, first_vector);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const EdgeOffset share = (piece.end - piece.begin + rows_block_warps - 1) / rows_block_warps;
  const EdgeOffset begin = piece.begin + warp * share;
  gather.gather(begin, begin + share < piece.end ? begin + share : piece.end);
  gather.combine_groups();

  __shared__ Element of_warps[rows_block_warps][features];
  if (lane < policy.lanes) {
#pragma unroll
    for (int i = 0; i < Gather::width; ++i) {
      of_warps[warp][lane * Gather::width + i] = gather.elements()[i];
    }
  }
  __syncthreads();
  const int first_feature = first_vector * Gather::width;
  const std::int64_t left = launch.features - first_feature;
  const int num_features = left < features ? static_cast<int>(left) : features;
  for (int i = static_cast<int>(threadIdx.x); i < num_features; i += rows_block_threads) {
    Element whole = of_warps[0][i];
    for (int w = 1; w < rows_block_warps; ++w) Reduction::merge(whole, of_warps[w][i]);
    if (piece.slot < 0) {
      store_element<T, Reduction>(launch, {piece.row, first_feature + i}, whole);
    } else {
      static_cast<Element*>(launch.slots)[piece.slot * launch.features + first_feature + i] = whole;
    }
  }
  if (piece.slot < 0) return;
  const SplitRow split = launch.split_rows[piece.split_row];
  if (is_last_of(launch, piece.split_row, split.num_slots)) {
    merge_slots<T, Reduction>(launch, piece.row, split, first_feature, num_features);
  }
}

template <RowsPolicy policy, class T, bool aligned, class Reduction>
__device__ void reduce_short_row(const RowsLaunch& launch, std::int64_t team, int first_vector) {
  using Gather = TeamGather<policy, T, aligned, Reduction>;
  if (team >= launch.num_rows) return;
  const auto row = static_cast<VertexId>(team);
  const EdgeOffset begin = offset_at(launch.offsets, row);
  const EdgeOffset end = offset_at(launch.offsets, std::int64_t{row} + 1);
  if (end - begin > launch.long_row) return;
  Gather gather(launch, row, first_vector);
  gather.gather(begin, end);
  gather.combine_groups();
  if (!gather.writes()) return;
  float values[Gather::width];
  Reduction::finish(launch, gather.at(), gather.elements(), values);
  Gather::FeatureVector::narrowed(values).store(static_cast<T*>(launch.y) + row * launch.y_stride +
                                                gather.at().feature);
}

/// Blocks that an SM should hold. Without weights the loads of a step, and the sums, decide: left
/// alone, the compiler spills to hold more.
template <int unroll, class T, class Reduction>
constexpr int min_blocks_of() {
  if (Reduction::needs_weights) return 1;
  if (unroll > 4) return 8;
  return sizeof(T) == 2 ? 10 : 12;
}
template <int unroll, class T, class Reduction>
inline constexpr int min_blocks = min_blocks_of<unroll, T, Reduction>();

/// Blocks [0, num_pieces) take a long piece each, the rest the short rows. The policy comes in its
/// parts: nvcc 13.0 cannot name a kernel by a class value from a namespace.
template <int lanes, int edges, int unroll, bool shared_ids, class T, bool aligned, class Reduction>
__global__ void __launch_bounds__(rows_block_threads, min_blocks<unroll, T, Reduction>)
    reduce_rows(const RowsLaunch launch) {
  constexpr RowsPolicy policy = {lanes, edges, unroll, shared_ids};
  const int first_vector = static_cast<int>(blockIdx.y) * policy.lanes;
  if (blockIdx.x < launch.num_pieces) {
    reduce_long_piece<policy, T, aligned, Reduction>(launch, launch.pieces[blockIdx.x],
                                                     first_vector);
  } else {
    const std::int64_t thread =
        (std::int64_t{blockIdx.x} - launch.num_pieces) * rows_block_threads + threadIdx.x;
    reduce_short_row<policy, T, aligned, Reduction>(launch, thread / policy.team(), first_vector);
  }
}

template <RowsPolicy policy, class T, bool aligned, class Reduction>
void launch_rows(const RowsLaunch& launch, Stream stream) {
  constexpr int width = TeamGather<policy, T, aligned, Reduction>::width;
  constexpr int teams_per_block = rows_block_threads / policy.team();
  constexpr auto kernel = reduce_rows<policy.lanes, policy.edges, policy.unroll, policy.shared_ids,
                                      T, aligned, Reduction>;
  const dim3 grid(
      cuda::num_blocks(launch.num_rows, teams_per_block) + static_cast<unsigned>(launch.num_pieces),
      cuda::num_blocks(launch.features, std::int64_t{policy.lanes} * width));
  cuda::launch(kernel, grid, rows_block_threads, stream, launch);
}

/// One function per policy, in the order of the list.
template <const auto& policies, class T, bool aligned, class Reduction>
constexpr auto make_rows_functions() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{RowsFunction(launch_rows<policies[i], T, aligned, Reduction>)...};
  }
  (std::make_index_sequence<policies.size()>{});
}

}  // namespace tessera::ops
