// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/launch.cuh"
#include "cuda/overlapped_pair.cuh"
#include "cuda/precision.cuh"
#include "ops/rows/gather.cuh"
#include "ops/rows/work.cuh"
#include "ops/spmm/cuda/rows/policy.hpp"

/// Rows reduced on CUDA cores: gathered rows of X are added up, or compared, in registers.
///
/// Short rows belong to teams of lanes (policy.hpp), rows of more steps to whole warps, and what is
/// too long for a warp to blocks: each takes a piece of a row, its warps equal shares of the piece.
/// Where a row has several pieces, the block that is done last puts their results together in
/// order. The split depends on the graph alone: same bits every time.
namespace tessera::ops {

template <class T, class Reduction>
__device__ void store_element(const RowsLaunch& launch, const ReducedRow& at,
                              const typename Reduction::Element& element) {
  const typename Reduction::Element elements[1] = {element};
  float values[1];
  Reduction::finish(launch, at, elements, values);
  if constexpr (has_epilogue<Reduction>) {
    store_with_epilogue<T>(launch.epilogue, launch.features.y, launch.features.y_stride,
                           {at.row, at.feature, launch.features.count}, values);
  } else {
    static_cast<T*>(launch.features.y)[at.row * launch.features.y_stride + at.feature] =
        cuda::narrow<T>(values[0]);
  }
}

/// In the order of the row's edges, whichever block does it.
template <class T, class Reduction>
__device__ void merge_slots(const RowsLaunch& launch, VertexId row, const SplitRow& split,
                            int first_feature, int num_features) {
  using Element = typename Reduction::Element;
  for (int i = static_cast<int>(threadIdx.x); i < num_features; i += static_cast<int>(blockDim.x)) {
    // Past L1, which may hold what was there before.
    const auto* slot = static_cast<const volatile Element*>(launch.work.slots) +
                       split.first_slot * launch.features.count + first_feature + i;
    Element whole = Reduction::none();
    for (int k = 0; k < split.num_slots; ++k, slot += launch.features.count) {
      Reduction::merge(whole, Reduction::read(slot));
    }
    store_element<T, Reduction>(launch, {row, first_feature + i}, whole);
  }
}

/// What each warp of a block gathered of a piece, put together in the order of the warps, and with
/// the other pieces of its row.
template <class T, class Gather, class Reduction>
__device__ void combine_warps(const RowsLaunch& launch, const Gather& gather, int first_feature) {
  using Element = typename Reduction::Element;
  // Read again: to keep it would cost registers in the loop.
  const LongPiece piece = launch.work.pieces[blockIdx.x];
  constexpr int block_features = Gather::block_features;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto* const of_warps = reinterpret_cast<Element*>(shared_bytes);
  gather.for_kept([&](const ReducedRow& at, const Element(&elements)[Gather::kept]) {
    const int to = static_cast<int>(threadIdx.x / 32) * block_features + at.feature - first_feature;
#pragma unroll
    for (int i = 0; i < Gather::kept; ++i) of_warps[to + i] = elements[i];
  });
  __syncthreads();
  const std::int64_t left = launch.features.count - first_feature;
  const int num_features = left < block_features ? static_cast<int>(left) : block_features;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  for (int i = static_cast<int>(threadIdx.x); i < num_features; i += static_cast<int>(blockDim.x)) {
    Element whole = of_warps[i];
    for (int w = 1; w < num_warps; ++w) Reduction::merge(whole, of_warps[w * block_features + i]);
    if (piece.slot < 0) {
      store_element<T, Reduction>(launch, {piece.row, first_feature + i}, whole);
    } else {
      static_cast<Element*>(
          launch.work.slots)[piece.slot * launch.features.count + first_feature + i] = whole;
    }
  }
  if (piece.slot < 0) return;
  const SplitRow split = launch.work.split_rows[piece.split_row];
  if (is_last_piece(launch.work, piece.split_row, split.num_slots)) {
    merge_slots<T, Reduction>(launch, piece.row, split, first_feature, num_features);
  }
}

template <class T, class Gather, class Reduction>
__device__ void store_row(const RowsLaunch& launch, const Gather& gather) {
  using Element = typename Reduction::Element;
  if constexpr (Gather::stores_shifted && !has_epilogue<Reduction>) {
    gather.store_shifted();
    return;
  }
  gather.for_kept([&](const ReducedRow& at, const Element(&elements)[Gather::kept]) {
    float values[Gather::kept];
    Reduction::finish(launch, at, elements, values);
    if constexpr (has_epilogue<Reduction>) {
      store_with_epilogue<T, (Gather::kept > 1)>(
          launch.epilogue, launch.features.y, launch.features.y_stride,
          {at.row, at.feature, launch.features.count}, values);
    } else {
      const auto row_bytes = static_cast<std::uint32_t>(launch.features.y_stride * sizeof(T));
      const auto offset = std::uint64_t{static_cast<std::uint32_t>(at.row)} * row_bytes;
      Gather::KeptVector::narrowed(values).store(static_cast<char*>(launch.features.y) + offset +
                                                 at.feature * sizeof(T));
    }
  });
}

/// Pieces and wide rows.
template <RowsPolicy policy, class T, RowStarts starts, class Reduction>
__device__ void reduce_by_warps(const RowsLaunch& launch, int first_vector) {
  using Gather = TeamGather<whole_warp(policy), T, starts, Reduction>;
  const bool is_piece = blockIdx.x < launch.work.num_pieces;
  RowSlice slice;
  if (is_piece) {
    slice = share_of_warp(launch.work.pieces[blockIdx.x]);
  } else {
    const unsigned warp = wide_row_of_warp(launch.work);
    if (warp < launch.work.num_wide) slice = slice_at(launch.work.wide_rows, warp);
  }
  Gather gather(launch, slice.row, first_vector);
  const typename Gather::Columns columns = gather.first_columns(slice.begin, slice.count);
  cuda::wait_as_follower(launch.work.follows);
  if (slice.row < 0) return;
  gather.gather(slice.begin, slice.count, columns);
  gather.combine_groups();
  if (is_piece) {
    combine_warps<T, Gather, Reduction>(launch, gather, first_vector * Gather::held);
  } else {
    store_row<T, Gather, Reduction>(launch, gather);
  }
}

/// Whether teams may take parts of one row beside each other: where single features are loaded, or
/// more than features, that would cost registers that decide how many warps there are.
template <RowsPolicy policy, RowStarts starts, class Reduction>
constexpr bool joins_parts() {
  if (starts == RowStarts::elements) return false;
  using Beside = typename Reduction::template Beside<1>;
  return policy.takes_parts_beside() && std::is_same_v<Beside, NothingBeside>;
}

template <RowsPolicy policy, class T, RowStarts starts, class Reduction>
__device__ void reduce_by_teams(const RowsLaunch& launch, int first_vector) {
  using Gather = TeamGather<policy, T, starts, Reduction>;
  const unsigned first_block = launch.work.num_pieces + launch.work.num_wide_blocks;
  unsigned team =
      (blockIdx.x - first_block) * (blockDim.x / policy.team()) + threadIdx.x / policy.team();
  if constexpr (joins_parts<policy, starts, Reduction>()) {
    if (launch.work.parts_beside) {
      // The blocks of so many parts share the rows, each with all of these parts.
      constexpr unsigned beside = policy.teams();
      team += blockIdx.y % beside * (gridDim.x - first_block) * (blockDim.x / policy.team());
      first_vector = static_cast<int>(blockIdx.y / beside * beside + team % beside) * policy.lanes;
      team /= beside;
    }
  }
  RowSlice slice;
  typename Gather::Columns columns = {};
  bool known = false;
  if constexpr (policy.takes_starts()) known = launch.work.short_rows != nullptr;
  if (!known) {
    slice = short_row_at(launch.work, launch.matrix.offsets, team);
  } else if (team < launch.work.num_short) {
    const auto* const start = reinterpret_cast<const int4*>(launch.work.short_rows + team);
    const int4 place = __ldg(start);
    const int4 first = __ldg(start + 1);
    slice = slice_of(place);
    static_assert(!policy.takes_starts() || sizeof columns == sizeof first);
    memcpy(&columns, &first, sizeof columns < sizeof first ? sizeof columns : sizeof first);
  }
  Gather gather(launch, slice.row, first_vector);
  if (!known) columns = gather.first_columns(slice.begin, slice.count);
  cuda::wait_as_follower(launch.work.follows);
  if (slice.row < 0) return;
  gather.gather(slice.begin, slice.count, columns);
  gather.combine_groups();
  store_row<T, Gather, Reduction>(launch, gather);
}

/// Blocks that an SM should hold. The loads of a step, and the sums, decide: left alone, the
/// compiler spills to hold more without weights, and holds less with them. Rows that begin anywhere
/// are loaded in two blocks; max and min keep two words per element, and their gradient loads two.
template <int loads, int features, RowStarts starts, class Reduction>
constexpr int min_blocks_of() {
  if (Reduction::needs_weights) {
    if (sizeof(typename Reduction::Element) > sizeof(float)) return 3;
    const bool few = starts != RowStarts::anywhere && loads <= 4 && features <= 4;
    return few && Reduction::weights_ahead ? 4 : 1;
  }
  if (sizeof(typename Reduction::Element) > sizeof(float)) return features > 4 ? 4 : 5;
  if (sizeof(typename Reduction::template Beside<features>) > 1) return features > 4 ? 3 : 4;
  if (starts == RowStarts::anywhere) return features > 4 ? 3 : 4;
  if (loads > 4) return 4;
  return features > 4 ? 5 : 6;
}
template <int loads, int features, RowStarts starts, class Reduction>
inline constexpr int min_blocks = min_blocks_of<loads, features, starts, Reduction>();

/// Blocks [0, num_pieces) take a long piece each, the next ones a wide row for each warp, the rest
/// the short rows. The policy comes in its parts: nvcc 13.0 cannot name a kernel by a class value
/// from a namespace. What the plan holds, lists and the first columns, is read before the kernel
/// ahead is done; rows of X are not.
template <int lanes, int edges, int unroll, int bytes, int vectors, class T, RowStarts starts,
          class Reduction>
__global__ void __launch_bounds__(
    max_rows_block_threads,
    (min_blocks<unroll * vectors, vectors * bytes / static_cast<int>(sizeof(T)), starts,
                Reduction>)) reduce_rows(const RowsLaunch launch) {
  constexpr RowsPolicy policy = {lanes, edges, unroll, bytes, vectors};
  const int first_vector = static_cast<int>(blockIdx.y) * policy.lanes;
  cuda::let_next_begin();
  if (blockIdx.x < launch.work.num_pieces + launch.work.num_wide_blocks) {
    reduce_by_warps<policy, T, starts, Reduction>(launch, first_vector);
  } else {
    reduce_by_teams<policy, T, starts, Reduction>(launch, first_vector);
  }
  cuda::end_follower(launch.work.follows);
}

template <RowsPolicy policy, class T, RowStarts starts, class Reduction>
void launch_rows(const RowsLaunch& launch, Stream stream) {
  using Gather = TeamGather<whole_warp(policy), T, starts, Reduction>;
  constexpr auto kernel = reduce_rows<policy.lanes, policy.edges, policy.unroll, policy.bytes,
                                      policy.vectors, T, starts, Reduction>;
  const unsigned block_teams = launch.work.block_threads / policy.team();
  const dim3 grid(launch.work.num_pieces + launch.work.num_wide_blocks +
                      cuda::num_blocks(launch.work.num_short, block_teams),
                  cuda::num_blocks(launch.features.count, Gather::block_features));
  RowsLaunch fitted = launch;
  fitted.work.parts_beside = launch.work.parts_beside && grid.y % policy.teams() == 0;
  // Only pieces need it; without them the cache has it all.
  const std::size_t shared_bytes = launch.work.num_pieces == 0
                                       ? 0
                                       : std::size_t{launch.work.block_threads} / 32 *
                                             Gather::block_features *
                                             sizeof(typename Reduction::Element);
  cuda::launch_overlapped(kernel, grid, launch.work.block_threads, shared_bytes, stream, fitted);
}

/// In place of kernels with lanes of 8 bytes in fp32, which a plan never asks for.
inline void no_rows_kernel(const RowsLaunch&, Stream) {
  throw Error(ErrorCode::internal, "lanes of 8 bytes for fp32 features", "spmm",
              "report this with the plan's explanation");
}

template <RowsPolicy policy, class T, RowStarts starts, class Reduction>
constexpr RowsFunction rows_function() {
  if constexpr (!takes(policy, static_cast<int>(sizeof(T)))) {
    return no_rows_kernel;
  } else {
    return launch_rows<kernel_of(policy, starts), T, starts, Reduction>;
  }
}

/// One function per policy, in the order of the list.
template <const auto& policies, class T, RowStarts starts, class Reduction>
constexpr auto make_rows_functions() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{rows_function<policies[i], T, starts, Reduction>()...};
  }
  (std::make_index_sequence<policies.size()>{});
}

template <class T, RowsReduction reduction>
struct ReductionOf;
template <class T>
struct ReductionOf<T, RowsReduction::pattern_sum> : std::type_identity<PatternSum<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::weighted_sum> : std::type_identity<WeightedSum<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::pattern_best> : std::type_identity<PatternBest<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::best> : std::type_identity<Best<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::pattern_winner_sum> : std::type_identity<PatternWinnerSum<T>> {
};
template <class T>
struct ReductionOf<T, RowsReduction::winner_sum> : std::type_identity<WinnerSum<T>> {};

/// What a key's kernels do to rows, with an epilogue where it has one.
template <class T, RowsKey key>
struct EndedReduction {
  using Plain = typename ReductionOf<T, key.reduction>::type;
  using Type = typename std::conditional_t<key.epilogue, std::type_identity<WithEpilogue<Plain>>,
                                           std::type_identity<Plain>>::type;
};

template <RowsKey key>
std::span<const RowsFunction> RowsKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  using Reduction = typename EndedReduction<T, key>::Type;
  if constexpr (of_winners(key.reduction)) {
    static constexpr auto functions =
        make_rows_functions<best_policies, T, key.starts, Reduction>();
    return functions;
  } else {
    static constexpr auto functions =
        make_rows_functions<rows_policies, T, key.starts, Reduction>();
    return functions;
  }
}

}  // namespace tessera::ops
