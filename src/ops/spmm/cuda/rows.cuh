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
/// pieces, a second kernel puts their results together in order. The split depends on the graph
/// alone: same bits every time.
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

template <RowsPolicy policy, class T, bool aligned, class Reduction>
__device__ void reduce_long_piece(const RowsLaunch& launch, const LongPiece& piece,
                                  std::int64_t first_vector) {
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
  for (int i = static_cast<int>(threadIdx.x); i < features; i += rows_block_threads) {
    const std::int64_t feature = first_vector * Gather::width + i;
    if (feature >= launch.features) break;
    Element whole = of_warps[0][i];
    for (int w = 1; w < rows_block_warps; ++w) Reduction::merge(whole, of_warps[w][i]);
    if (piece.slot >= 0) {
      static_cast<Element*>(launch.slots)[piece.slot * launch.features + feature] = whole;
    } else {
      store_element<T, Reduction>(launch, {piece.row, feature}, whole);
    }
  }
}

template <RowsPolicy policy, class T, bool aligned, class Reduction>
__device__ void reduce_short_row(const RowsLaunch& launch, std::int64_t team,
                                 std::int64_t first_vector) {
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

/// Blocks [0, num_pieces) take a long piece each, the rest the short rows. The policy comes in its
/// parts: nvcc 13.0 cannot name a kernel by a class value from a namespace.
template <int lanes, int edges, int unroll, bool shared_ids, class T, bool aligned, class Reduction>
__global__ __launch_bounds__(rows_block_threads) void reduce_rows(const RowsLaunch launch) {
  constexpr RowsPolicy policy = {lanes, edges, unroll, shared_ids};
  const std::int64_t first_vector = std::int64_t{blockIdx.y} * policy.lanes;
  if (blockIdx.x < launch.num_pieces) {
    reduce_long_piece<policy, T, aligned, Reduction>(launch, launch.pieces[blockIdx.x],
                                                     first_vector);
  } else {
    const std::int64_t thread =
        (std::int64_t{blockIdx.x} - launch.num_pieces) * rows_block_threads + threadIdx.x;
    reduce_short_row<policy, T, aligned, Reduction>(launch, thread / policy.team(), first_vector);
  }
}

/// Puts the slots of the rows that were cut together, in order: a block a row.
template <class T, class Reduction>
__global__ void merge_slots(const RowsLaunch launch) {
  using Element = typename Reduction::Element;
  const SplitRow split = launch.split_rows[blockIdx.x];
  const auto* const slots =
      static_cast<const Element*>(launch.slots) + split.first_slot * launch.features;
  for (std::int64_t feature = threadIdx.x; feature < launch.features; feature += blockDim.x) {
    Element whole = Reduction::none();
    for (std::int64_t slot = 0; slot < split.num_slots; ++slot) {
      Reduction::merge(whole, slots[slot * launch.features + feature]);
    }
    store_element<T, Reduction>(launch, {split.row, feature}, whole);
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
  cuda::launch(merge_slots<T, Reduction>, dim3(static_cast<unsigned>(launch.num_split_rows)), 128,
               stream, launch);
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
