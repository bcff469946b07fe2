// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/edge_rows.cuh"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/edges/launch.hpp"
#include "ops/sddmm/cuda/group_sums.cuh"

/// Dot products of both ends of every edge on CUDA cores.
///
/// Edges are cut into tiles of equal size, whatever rows they belong to, so hubs cost nothing. A
/// warp takes a tile (policy.hpp); the warps of a block take neighbouring tiles at the same time,
/// so that rows which neighbours in the graph share are found in the first-level cache. Every dot
/// product is summed in an order that the policy alone decides: same bits every time.
namespace tessera::ops {

/// The ends of one edge.
struct EdgeEnds {
  VertexId kept = 0;
  VertexId gathered = 0;

  __device__ EdgeEnds(VertexId of_target, VertexId of_source)
      : kept(of_target), gathered(of_source) {}
  /// Past the last edge, of the last.
  __device__ EdgeEnds(const EdgesLaunch& launch, EdgeOffset edge) {
    edge = min(edge, launch.num_edges - 1);
    kept = cuda::row_of_edge(launch.edge_rows, edge);
    gathered = __ldcs(launch.indices + edge);
  }

  __device__ float scale(const EdgesLaunch& launch) const {
    const float of_kept = launch.kept.scale == nullptr ? 1.0f : __ldg(launch.kept.scale + kept);
    const float of_gathered =
        launch.gathered.scale == nullptr ? 1.0f : __ldg(launch.gathered.scale + gathered);
    return of_kept * of_gathered;
  }
};

/// An edge whose ends are asked for while the edges before it are computed.
class AwaitedEdge {
 public:
  /// Past the last edge, the last.
  __device__ void ask(const EdgesLaunch& launch, EdgeOffset edge) {
    edge = min(edge, launch.num_edges - 1);
    row_ = cuda::ask_for_row(launch.edge_rows, edge);
    source_ = __ldcs(launch.indices + edge);
  }
  __device__ EdgeEnds ends(const EdgesLaunch& launch, EdgeOffset edge) const {
    edge = min(edge, launch.num_edges - 1);
    return {cuda::row_of_edge(launch.edge_rows, edge, row_), source_};
  }

 private:
  uint2 row_ = {};
  VertexId source_ = 0;
};

/// The dot products of a group's edges, a batch at a time.
template <EdgesPolicy policy, class T, bool aligned>
class GroupDots {
 public:
  using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;
  static constexpr int count = FeatureVector::count;
  static constexpr int chunk_vectors = policy.lanes * policy.vectors;
  static constexpr std::int64_t vector_step = policy.lanes * sizeof(typename FeatureVector::Raw);

  /// `kept` and `gathered` are the ends of the edge whose place in the tile is this lane's.
  __device__ GroupDots(const EdgesLaunch& launch, VertexId kept, VertexId gathered)
      : launch_(launch),
        kept_(kept),
        gathered_(gathered),
        lane_(static_cast<int>(threadIdx.x) % policy.lanes),
        first_edge_(static_cast<int>(threadIdx.x) % 32 / policy.lanes * policy.edges),
        num_vectors_(static_cast<int>(launch.width / count)),
        kept_bytes_(static_cast<std::uint32_t>(launch.kept.stride * sizeof(T))),
        gathered_bytes_(static_cast<std::uint32_t>(launch.gathered.stride * sizeof(T))) {}

  /// The place in the tile of the edge whose dot product this lane gets.
  __device__ int edge() const { return first_edge_ + lane_ % policy.edges; }
  /// Whether this lane gets one that no other has.
  __device__ bool writes() const { return lane_ < policy.edges; }

  /// The dot products of one head.
  __device__ float compute(std::int64_t head) {
    const std::int64_t feature = head * launch_.width + std::int64_t{lane_} * count;
    const char* const kept = static_cast<const char*>(launch_.kept.features) + feature * sizeof(T);
    const char* const gathered =
        static_cast<const char*>(launch_.gathered.features) + feature * sizeof(T);
    float own = 0;
    held_ = -1;
    // Not unrolled: the loads of later batches would take the registers of other warps.
#pragma unroll 1
    for (int first = 0; first < policy.edges; first += policy.batch) {
      Sums sums = batch_sums(kept, gathered, first);
      const float total = group_sum<policy.lanes>(sums.of, lane_);
      const int place = lane_ - first;
      const float other = __shfl_sync(
          ~0u, total, (place & (policy.batch - 1)) * (policy.lanes / policy.batch), policy.lanes);
      if (place >= 0 && place < policy.batch) own = other;
    }
    return own;
  }

 private:
  struct Sums {
    float of[policy.batch] = {};
  };
  struct Rows {
    VertexId kept[policy.batch];
    const char* gathered[policy.batch];
  };

  /// What this lane's features add to the dot products of a batch.
  __device__ Sums batch_sums(const char* kept, const char* gathered, int first) {
    Rows rows;
#pragma unroll
    for (int b = 0; b < policy.batch; ++b) {
      const int edge = first_edge_ + first + b;
      rows.kept[b] = __shfl_sync(~0u, kept_, edge);
      const auto row = static_cast<std::uint32_t>(__shfl_sync(~0u, gathered_, edge));
      rows.gathered[b] = gathered + static_cast<std::uint64_t>(row) * gathered_bytes_;
    }
    Sums sums;
    if (num_vectors_ == chunk_vectors) {
      add_chunk<true>(kept, 0, rows, sums);
      return sums;
    }
    int done = 0;
    for (; done + chunk_vectors <= num_vectors_; done += chunk_vectors) {
      add_chunk<true>(kept, done, rows, sums);
      held_ = -1;
    }
    if (done < num_vectors_) add_chunk<false>(kept, done, rows, sums);
    if (num_vectors_ > chunk_vectors) held_ = -1;
    return sums;
  }

  /// The features of one vertex that a lane holds; beyond the last vector there are zeros.
  template <bool whole>
  __device__ void load(const char* row, int done, FeatureVector (&vectors)[policy.vectors]) const {
    row += std::int64_t{done} * static_cast<int>(sizeof(typename FeatureVector::Raw));
#pragma unroll
    for (int k = 0; k < policy.vectors; ++k) {
      const bool inside = whole || done + k * policy.lanes + lane_ < num_vectors_;
      vectors[k] = inside ? FeatureVector::load(row + k * vector_step) : FeatureVector::zero();
    }
  }

  template <bool whole>
  __device__ void load_kept(const char* kept, VertexId row, int done,
                            FeatureVector (&vectors)[policy.vectors]) const {
    load<whole>(kept + static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * kept_bytes_,
                done, vectors);
  }
  __device__ void widen_kept(const FeatureVector (&vectors)[policy.vectors]) {
#pragma unroll
    for (int k = 0; k < policy.vectors; ++k) vectors[k].widen_to(held_features_[k]);
  }

  __device__ void multiply(const FeatureVector (&gathered)[policy.vectors], float& sum) const {
#pragma unroll
    for (int k = 0; k < policy.vectors; ++k) {
      float values[count];
      gathered[k].widen_to(values);
#pragma unroll
      for (int i = 0; i < count; ++i) sum = fmaf(held_features_[k][i], values[i], sum);
    }
  }

  template <bool whole>
  __device__ void add_chunk(const char* kept, int done, const Rows& rows, Sums& sums) {
    FeatureVector gathered[policy.batch][policy.vectors];
#pragma unroll
    for (int b = 0; b < policy.batch; ++b) load<whole>(rows.gathered[b], done, gathered[b]);
    if constexpr (policy.keeps) {
#pragma unroll
      for (int b = 0; b < policy.batch; ++b) {
        if (rows.kept[b] != held_) {
          FeatureVector vectors[policy.vectors];
          load_kept<whole>(kept, rows.kept[b], done, vectors);
          widen_kept(vectors);
        }
        held_ = rows.kept[b];
        multiply(gathered[b], sums.of[b]);
      }
    } else {
      // All loads before the first is used, none for a row that the edge before has too.
      FeatureVector others[policy.batch][policy.vectors];
#pragma unroll
      for (int b = 0; b < policy.batch; ++b) {
        if (is_another(rows, b)) load_kept<whole>(kept, rows.kept[b], done, others[b]);
      }
#pragma unroll
      for (int b = 0; b < policy.batch; ++b) {
        if (is_another(rows, b)) widen_kept(others[b]);
        multiply(gathered[b], sums.of[b]);
      }
    }
  }
  __device__ static bool is_another(const Rows& rows, int b) {
    return b == 0 || rows.kept[b] != rows.kept[b - 1];
  }

  const EdgesLaunch& launch_;
  VertexId kept_;
  VertexId gathered_;
  int lane_;        ///< within the group
  int first_edge_;  ///< of the group, within the tile
  int num_vectors_;
  std::uint32_t kept_bytes_;  ///< from one row to the next
  std::uint32_t gathered_bytes_;
  VertexId held_ = -1;  ///< whose features are held
  float held_features_[policy.vectors][count];
};

/// Blocks of a multiprocessor that the registers should have room for: what a lane has to hold, and
/// some more. Left alone, the compiler takes more than that, and fewer warps hide their waiting.
template <EdgesPolicy policy, class T, bool aligned>
constexpr int resident_blocks() {
  constexpr int register_file = 65536;
  constexpr int count = GroupDots<policy, T, aligned>::count;
  const int loaded = policy.batch * policy.vectors * (aligned ? 4 : 1) * (policy.keeps ? 1 : 2);
  const int registers =
      26 + policy.vectors * count + loaded + 3 * policy.batch + (sizeof(T) == 2 ? 4 : 0);
  const int blocks = register_file / (registers * edges_block_threads);
  return blocks < 1 ? 1 : blocks > 6 ? 6 : blocks;
}

/// The policy comes in its parts: nvcc 13.0 cannot name a kernel by a class value. Most launches
/// are `plain`: one head, no scales. That takes half the instructions before the first row is asked
/// for, which small graphs notice.
template <int lanes, int vectors, int edges, int batch, bool keeps, class T, bool aligned,
          bool plain>
__global__ __launch_bounds__(
    edges_block_threads, (resident_blocks<EdgesPolicy{lanes, vectors, edges, batch, keeps}, T,
                                          aligned>())) void edge_dots(const EdgesLaunch launch) {
  constexpr EdgesPolicy policy = {lanes, vectors, edges, batch, keeps};
  cuda::let_next_begin();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  // Lanes beyond the tile repeat its last edge.
  const int place = lane < policy.tile() ? lane : policy.tile() - 1;
  const std::int64_t first_tile =
      std::int64_t{blockIdx.x} * edges_block_warps * launch.tiles_per_warp + warp;
  constexpr EdgeOffset step = EdgeOffset{edges_block_warps} * policy.tile();
  EdgeOffset begin = first_tile * policy.tile();
  constexpr bool asks_ahead = plain && policy.asks_ahead();
  AwaitedEdge awaited;
  if constexpr (asks_ahead) awaited.ask(launch, begin + place);
  for (int i = 0; i < launch.tiles_per_warp; ++i, begin += step) {
    if (begin >= launch.num_edges) return;
    if constexpr (plain && !asks_ahead) awaited.ask(launch, begin + place);
    const EdgeEnds ends =
        plain ? awaited.ends(launch, begin + place) : EdgeEnds(launch, begin + place);
    if (asks_ahead && i + 1 < launch.tiles_per_warp) awaited.ask(launch, begin + step + place);
    // Only the first time there is something to wait for.
    cuda::wait_for_previous();
    GroupDots<policy, T, aligned> dots(launch, ends.kept, ends.gathered);
    const bool writes = dots.writes() && begin + dots.edge() < launch.num_edges;
    T* const results = static_cast<T*>(launch.edges);
    if constexpr (plain) {
      const float sum = dots.compute(0);
      if (writes) results[(begin + dots.edge()) * launch.edges_stride] = cuda::narrow<T>(sum);
      continue;
    }
    const float scale = __shfl_sync(~0u, ends.scale(launch), dots.edge());
    for (std::int64_t head = 0; head < launch.heads; ++head) {
      const float sum = dots.compute(head) * scale;
      if (writes)
        results[(begin + dots.edge()) * launch.edges_stride + head] = cuda::narrow<T>(sum);
    }
  }
}

template <EdgesPolicy policy, class T, bool aligned>
void launch_edge_dots(const EdgesLaunch& launch, Stream stream) {
  constexpr auto general = edge_dots<policy.lanes, policy.vectors, policy.edges, policy.batch,
                                     policy.keeps, T, aligned, false>;
  constexpr auto plain = edge_dots<policy.lanes, policy.vectors, policy.edges, policy.batch,
                                   policy.keeps, T, aligned, aligned>;
  const bool is_plain =
      launch.heads == 1 && launch.kept.scale == nullptr && launch.gathered.scale == nullptr;
  const std::int64_t edges_per_block =
      std::int64_t{policy.tile()} * edges_block_warps * launch.tiles_per_warp;
  cuda::launch_overlapped(is_plain ? plain : general,
                          dim3(cuda::num_blocks(launch.num_edges, edges_per_block)),
                          edges_block_threads, stream, launch);
}

/// One function per policy, in the order of the list.
template <const auto& policies, class T, bool aligned>
constexpr auto make_edges_functions() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{EdgesFunction{launch_edge_dots<policies[i], T, aligned>}...};
  }
  (std::make_index_sequence<policies.size()>{});
}

template <EdgesKey key>
std::span<const EdgesFunction> EdgesKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  if constexpr (key.vectors) {
    static constexpr auto functions = make_edges_functions<vector_policies, T, true>();
    return functions;
  } else {
    static constexpr auto functions = make_edges_functions<scalar_policies, T, false>();
    return functions;
  }
}

}  // namespace tessera::ops
