// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/instances.hpp"
#include "ops/spmm/cuda/rows.hpp"

/// Sums over rows on CUDA cores: gathered rows of X are added up in registers.
///
/// Short rows belong to teams of lanes (policy.hpp), in the order of the graph, so that neighbours
/// in it find each other's rows of X in the cache. A row with more than `long_row` edges is left to
/// blocks: each takes a piece of it, its warps a quarter of the piece each. Where a row has several
/// pieces, a second kernel adds their sums in order. The split depends on the graph alone: same
/// bits every time.
namespace tessera::ops {

__device__ inline EdgeOffset offset_at(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

/// The sums of one vector of features over some edges of a row, shared by a team.
template <RowsPolicy policy, class T, bool aligned, bool weighted>
class TeamSum {
 public:
  using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;
  static constexpr int width = FeatureVector::count;

  /// `first_vector` is the position of the team's first vector in a row of X. Lanes beyond the last
  /// feature load the first one instead and write nothing: no load in the loop has a condition.
  __device__ TeamSum(const RowsLaunch& launch, std::int64_t first_vector)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x) % policy.team()),
        feature_((first_vector + lane_ % policy.lanes) * width),
        active_(feature_ < launch.features),
        features_(static_cast<const char*>(launch.x) + (active_ ? feature_ : 0) * sizeof(T)),
        row_bytes_(static_cast<std::uint32_t>(launch.x_stride * sizeof(T))) {}

  /// A row has fewer than 2^31 edges: 32 bits count them. All but the last step are whole, so that
  /// all their loads are in flight together.
  __device__ void gather(EdgeOffset begin, EdgeOffset end) {
    int left = end > begin ? static_cast<int>(end - begin) : 0;
    if constexpr (policy.shared_ids) {
      const VertexId* indices = launch_.indices + begin + lane_;
      VertexId next = lane_ < left ? __ldg(indices) : 0;
      for (; left >= 32; left -= 32, begin += 32) {
        const VertexId mine = next;
        indices += 32;
        if (lane_ + 32 < left) next = __ldg(indices);
#pragma unroll
        for (int offset = 0; offset < 32; offset += policy.step()) {
          add<true>(begin + offset, left, passed_round(mine, offset));
        }
      }
      for (int offset = 0; offset < left; offset += policy.step()) {
        add<false>(begin + offset, left - offset, passed_round(next, offset));
      }
    } else {
      const VertexId* indices = launch_.indices + begin + group();
      for (; left >= policy.step(); left -= policy.step(), begin += policy.step()) {
        add<true>(begin, left, loaded<true>(indices, left));
        indices += policy.step();
      }
      if (left > 0) add<false>(begin, left, loaded<false>(indices, left));
    }
  }

  /// Afterwards the first group's lanes hold the sums of the team.
  __device__ void combine_groups() {
    const int shift = static_cast<int>(threadIdx.x) % 32 / policy.team() * policy.team();
    const unsigned team_mask =
        policy.team() == 32 ? ~0u : ((1u << (policy.team() % 32)) - 1) << shift;
#pragma unroll
    for (int distance = policy.lanes; distance < policy.team(); distance *= 2) {
#pragma unroll
      for (int i = 0; i < width; ++i) sums_[i] += __shfl_xor_sync(team_mask, sums_[i], distance);
    }
  }

  /// True for the lanes that have something to write after `combine_groups`.
  __device__ bool writes() const { return active_ && lane_ < policy.lanes; }
  __device__ std::int64_t feature() const { return feature_; }
  __device__ float (&sums())[width] { return sums_; }

 private:
  /// The columns of one step's edges that fall to this lane.
  struct Columns {
    VertexId ids[policy.unroll];
  };

  __device__ int group() const { return lane_ / policy.lanes; }

  template <bool whole>
  __device__ Columns loaded(const VertexId* indices, int left) const {
    Columns columns;
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      const bool live = whole || u * policy.edges + group() < left;
      columns.ids[u] = live ? __ldg(indices + u * policy.edges) : 0;
    }
    return columns;
  }

  __device__ Columns passed_round(VertexId mine, int offset) const {
    Columns columns;
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      columns.ids[u] = __shfl_sync(~0u, mine, offset + u * policy.edges + group());
    }
    return columns;
  }

  /// Adds the edges of one step from `begin` on; unless `whole`, only `left` of them exist.
  template <bool whole>
  __device__ void add(EdgeOffset begin, int left, const Columns& columns) {
    FeatureVector rows[policy.unroll];
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      const bool live = whole || u * policy.edges + group() < left;
      const auto offset =
          static_cast<std::uint64_t>(static_cast<std::uint32_t>(columns.ids[u])) * row_bytes_;
      rows[u] = live ? FeatureVector::load(features_ + offset) : FeatureVector::zero();
    }
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      float values[width];
      rows[u].widen_to(values);
      if constexpr (weighted) {
        const int edge = u * policy.edges + group();
        const bool live = whole || edge < left;
        const float weight = live ? weight_of(begin + edge, columns.ids[u]) : 0.0f;
#pragma unroll
        for (int i = 0; i < width; ++i) sums_[i] = fmaf(weight, values[i], sums_[i]);
      } else {
#pragma unroll
        for (int i = 0; i < width; ++i) sums_[i] += values[i];
      }
    }
  }

  __device__ float weight_of(EdgeOffset edge, VertexId column) const {
    float weight = 1;
    if (launch_.graph_values != nullptr || launch_.stored_values != nullptr) {
      const EdgeOffset at = launch_.positions != nullptr ? __ldg(launch_.positions + edge) : edge;
      weight =
          launch_.stored_values != nullptr
              ? cuda::widen(static_cast<const T*>(launch_.stored_values)[at * launch_.value_stride])
              : __ldg(launch_.graph_values + at);
    }
    if (launch_.col_scale != nullptr) weight *= __ldg(launch_.col_scale + column);
    return weight;
  }

  const RowsLaunch& launch_;
  int lane_;
  std::int64_t feature_;
  bool active_;
  const char* features_;     ///< this lane's, of the first row of X
  std::uint32_t row_bytes_;  ///< from one row of X to the next
  float sums_[width] = {};
};

/// What the sum of a row is multiplied and divided by.
struct RowFactor {
  float scale = 1;
  float divisor = 1;

  __device__ RowFactor(const RowsLaunch& launch, VertexId row, EdgeOffset degree) {
    if (launch.row_scale != nullptr) scale = __ldg(launch.row_scale + row);
    if (launch.mean && degree > 0) divisor = static_cast<float>(degree);
  }
  __device__ float operator()(float sum) const { return sum * scale / divisor; }
};

/// The same team with as many edges at once as a warp holds: what a long row wants.
constexpr RowsPolicy whole_warp(RowsPolicy policy) {
  policy.edges = 32 / policy.lanes;
  return policy;
}

template <RowsPolicy policy, class T, bool aligned, bool weighted>
__device__ void sum_long_piece(const RowsLaunch& launch, const LongPiece& piece,
                               std::int64_t first_vector) {
  constexpr RowsPolicy wide = whole_warp(policy);
  TeamSum<wide, T, aligned, weighted> sum(launch, first_vector);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const EdgeOffset share = (piece.end - piece.begin + rows_block_warps - 1) / rows_block_warps;
  const EdgeOffset begin = piece.begin + warp * share;
  sum.gather(begin, begin + share < piece.end ? begin + share : piece.end);
  sum.combine_groups();

  constexpr int width = TeamSum<wide, T, aligned, weighted>::width;
  __shared__ float warp_sums[rows_block_warps][wide.lanes * width];
  if (static_cast<int>(threadIdx.x) % 32 < wide.lanes) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      warp_sums[warp][static_cast<int>(threadIdx.x) % 32 * width + i] = sum.sums()[i];
    }
  }
  __syncthreads();
  const EdgeOffset degree =
      offset_at(launch.offsets, piece.row + 1) - offset_at(launch.offsets, piece.row);
  for (int i = static_cast<int>(threadIdx.x); i < wide.lanes * width; i += rows_block_threads) {
    const std::int64_t feature = first_vector * width + i;
    if (feature >= launch.features) break;
    float total = 0;
    for (int w = 0; w < rows_block_warps; ++w) total += warp_sums[w][i];
    if (piece.slot >= 0) {
      launch.slots[piece.slot * launch.features + feature] = total;
    } else {
      static_cast<T*>(launch.y)[piece.row * launch.y_stride + feature] =
          cuda::narrow<T>(RowFactor(launch, piece.row, degree)(total));
    }
  }
}

template <RowsPolicy policy, class T, bool aligned, bool weighted>
__device__ void sum_short_row(const RowsLaunch& launch, std::int64_t team,
                              std::int64_t first_vector) {
  if (team >= launch.num_rows) return;
  const auto row = static_cast<VertexId>(team);
  const EdgeOffset begin = offset_at(launch.offsets, row);
  const EdgeOffset end = offset_at(launch.offsets, std::int64_t{row} + 1);
  if (end - begin > launch.long_row) return;
  TeamSum<policy, T, aligned, weighted> sum(launch, first_vector);
  sum.gather(begin, end);
  sum.combine_groups();
  if (!sum.writes()) return;
  const RowFactor factor(launch, row, end - begin);
  float(&sums)[TeamSum<policy, T, aligned, weighted>::width] = sum.sums();
  for (float& value : sums) value = factor(value);
  TeamSum<policy, T, aligned, weighted>::FeatureVector::narrowed(sums).store(
      static_cast<T*>(launch.y) + row * launch.y_stride + sum.feature());
}

/// Blocks [0, num_pieces) take a long piece each, the rest the short rows. The policy comes in its
/// parts: nvcc 13.0 cannot name a kernel by a class value from a namespace.
template <int lanes, int edges, int unroll, bool shared_ids, class T, bool aligned, bool weighted>
__global__ __launch_bounds__(rows_block_threads) void sum_rows(const RowsLaunch launch) {
  constexpr RowsPolicy policy = {lanes, edges, unroll, shared_ids};
  const std::int64_t first_vector = std::int64_t{blockIdx.y} * policy.lanes;
  if (blockIdx.x < launch.num_pieces) {
    sum_long_piece<policy, T, aligned, weighted>(launch, launch.pieces[blockIdx.x], first_vector);
  } else {
    const std::int64_t thread =
        (std::int64_t{blockIdx.x} - launch.num_pieces) * rows_block_threads + threadIdx.x;
    sum_short_row<policy, T, aligned, weighted>(launch, thread / policy.team(), first_vector);
  }
}

/// Adds the slots of the rows that were cut, in order: a block a row.
template <class T>
__global__ void add_slots(const RowsLaunch launch) {
  const SplitRow split = launch.split_rows[blockIdx.x];
  const EdgeOffset degree =
      offset_at(launch.offsets, std::int64_t{split.row} + 1) - offset_at(launch.offsets, split.row);
  const RowFactor factor(launch, split.row, degree);
  for (std::int64_t feature = threadIdx.x; feature < launch.features; feature += blockDim.x) {
    float total = 0;
    for (std::int64_t slot = 0; slot < split.num_slots; ++slot) {
      total += launch.slots[(split.first_slot + slot) * launch.features + feature];
    }
    static_cast<T*>(launch.y)[split.row * launch.y_stride + feature] =
        cuda::narrow<T>(factor(total));
  }
}

template <RowsPolicy policy, class T, bool aligned, bool weighted>
void launch_rows(const RowsLaunch& launch, Stream stream) {
  constexpr int width = TeamSum<policy, T, aligned, weighted>::width;
  constexpr int teams_per_block = rows_block_threads / policy.team();
  constexpr auto kernel =
      sum_rows<policy.lanes, policy.edges, policy.unroll, policy.shared_ids, T, aligned, weighted>;
  const dim3 grid(
      cuda::num_blocks(launch.num_rows, teams_per_block) + static_cast<unsigned>(launch.num_pieces),
      cuda::num_blocks(launch.features, std::int64_t{policy.lanes} * width));
  cuda::launch(kernel, grid, rows_block_threads, stream, launch);
  cuda::launch(add_slots<T>, dim3(static_cast<unsigned>(launch.num_split_rows)), 128, stream,
               launch);
}

/// One function per policy, in the order of `rows_policies`.
template <class T, bool aligned, bool weighted>
constexpr RowsFunctions make_rows_functions() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return RowsFunctions{launch_rows<rows_policies[i], T, aligned, weighted>...};
  }
  (std::make_index_sequence<rows_policies.size()>{});
}

}  // namespace tessera::ops
