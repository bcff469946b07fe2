// SPDX-License-Identifier: Apache-2.0
#include "sample/cuda/hop.hpp"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/search.cuh"
#include "sample/weighted_set.hpp"

namespace tessera::sample::on_gpu {
namespace {

using cuda::thread_number;

constexpr int warp_lanes = 32;
constexpr unsigned whole_warp = ~0u;

__device__ std::uint32_t exchange_empty(std::uint32_t* key, std::uint32_t wanted) {
  return atomicCAS(key, no_key<std::uint32_t>, wanted);
}
__device__ std::uint64_t exchange_empty(std::uint64_t* key, std::uint64_t wanted) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(key), no_key<unsigned long long>,
                   static_cast<unsigned long long>(wanted));
}

/// Enters a key with other threads at it, with the smallest of their numbers. Says where.
template <class Key>
__device__ std::uint32_t claim(const Table<Key>& table, Key key, std::uint32_t number) {
  const std::uint64_t last = ~std::uint64_t{0} >> table.shift;
  for (std::uint64_t place = home_of(key, table.shift);; place = (place + 1) & last) {
    Slot<Key>& slot = table.slots[place];
    Key found = *static_cast<const volatile Key*>(&slot.key);
    if (found == no_key<Key>) found = exchange_empty(&slot.key, key);
    if (found != no_key<Key> && found != key) continue;
    // Numbers only become smaller, so one that is small enough needs no exchange.
    if (number < *static_cast<const volatile std::uint32_t*>(&slot.number)) {
      atomicMin(&slot.number, number);
    }
    return static_cast<std::uint32_t>(place);
  }
}

template <class Key>
__device__ Choice choice_of_key(const Hop<Key>& hop, Key key) {
  const std::int64_t* const time =
      hop.seed_times == nullptr ? nullptr : hop.seed_times + tree_of(key);
  return choice_of(hop.lists, hop.rules, vertex_of(key), time);
}

template <class Key>
__global__ void begin_batch_kernel(const Hop<Key> hop, const VertexId* seeds,
                                   std::int64_t num_seeds) {
  const std::int64_t i = thread_number();
  if (i > num_seeds) return;
  if (i == num_seeds) {
    hop.counts[i] = 0;
    return;
  }
  const Key key = key_of<Key>(static_cast<std::size_t>(i), seeds[i]);
  hop.keys[i] = key;
  hop.counts[i] = count_of(hop.rules, choice_of_key(hop, key));
}

template <class Key>
__global__ void enter_vertices_kernel(const Hop<Key> hop) {
  const std::int64_t i = thread_number();
  if (i < hop.vertices[1]) claim(hop.table, hop.keys[i], static_cast<std::uint32_t>(i));
}

/// A warp as a team that draws a weighted set.
struct Warp {
  static constexpr std::int64_t size = warp_lanes;
  int lane;

  __device__ void meet() const { __syncwarp(); }
  __device__ bool is_first(EdgeOffset edge) const {
    const auto bits = static_cast<unsigned long long>(edge);
    return __ffs(static_cast<int>(__match_any_sync(whole_warp, bits))) - 1 == lane;
  }
  __device__ std::int64_t count(bool condition) const {
    return __popc(__ballot_sync(whole_warp, condition));
  }
  __device__ std::int64_t count_below(bool condition) const {
    return __popc(__ballot_sync(whole_warp, condition) & ((1u << lane) - 1));
  }
  __device__ WeightKey least(WeightKey key) const {
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
      const WeightKey other{__shfl_xor_sync(whole_warp, key.value, distance),
                            __shfl_xor_sync(whole_warp, key.edge, distance)};
      if (other < key) key = other;
    }
    return key;
  }
};

/// A warp for each vertex.
template <class Key>
__global__ void draw_weighted_sets_kernel(const Hop<Key> hop) {
  const Warp warp{static_cast<int>(threadIdx.x) % warp_lanes};
  const std::int64_t target = thread_number() / warp_lanes;
  if (target >= hop.vertices[1] - hop.vertices[0]) return;
  const Key key = hop.keys[hop.vertices[0] + target];
  const Choice choice = choice_of_key(hop, key);
  const std::int64_t count = hop.counts[target + 1] - hop.counts[target];
  if (count == choice.size()) return;  // each edge follows from its place
  draw_weighted_set(warp, hop.lists, hop.rules, choice, std::uint64_t{key},
                    hop.candidates + hop.edges[0] + hop.counts[target], count);
}

/// A thread for each edge and for each vertex that draws.
template <class Key>
__global__ void draw_edges_kernel(const Hop<Key> hop) {
  const std::int64_t e = thread_number();
  const std::int64_t first = hop.vertices[0], targets = hop.vertices[1] - first;
  const EdgeOffset before = hop.edges[0];
  if (e < targets) hop.offsets[first + e] = before + hop.counts[e];
  if (e >= hop.counts[targets]) return;
  const std::int64_t target = cuda::lower_bound(hop.counts, 0, targets + 1, e + 1) - 1;
  const Key key = hop.keys[first + target];
  const Choice choice = choice_of_key(hop, key);
  const EdgeOffset begin = hop.counts[target];
  const std::int64_t count = hop.counts[target + 1] - begin;
  const bool is_there = hop.rules.fan_out >= 0 && !hop.rules.replace &&
                        hop.lists.weights != nullptr && count < choice.size();
  const EdgeOffset edge =
      is_there ? hop.candidates[before + e]
               : drawn_edge(hop.lists, hop.rules, choice, std::uint64_t{key}, count, e - begin);
  hop.candidates[before + e] = edge;
  hop.targets[before + e] = static_cast<VertexId>(first + target);
  hop.sources[before + e] = claim(hop.table, key_of<Key>(tree_of(key), hop.lists.sources[edge]),
                                  provisional_number + static_cast<std::uint32_t>(e));
}

template <class Key>
__global__ void mark_firsts_kernel(const Hop<Key> hop, std::int32_t* firsts) {
  const std::int64_t e = thread_number();
  if (e > hop.most_edges) return;
  const bool is_edge = e < hop.counts[hop.vertices[1] - hop.vertices[0]];
  firsts[e] = is_edge && hop.table.slots[hop.sources[hop.edges[0] + e]].number ==
                             provisional_number + static_cast<std::uint32_t>(e);
}

template <class Key>
__global__ void append_vertices_kernel(const Hop<Key> hop, const std::int32_t* before,
                                       const Hop<Key> next) {
  const std::int64_t e = thread_number();
  if (e > hop.most_edges) return;
  const std::int64_t targets = hop.vertices[1] - hop.vertices[0];
  const std::int64_t added = before[hop.most_edges];
  if (before[e] < before[std::min(e + 1, hop.most_edges)]) {
    Slot<Key>& slot = hop.table.slots[hop.sources[hop.edges[0] + e]];
    const std::int64_t number = hop.vertices[1] + before[e];
    slot.number = static_cast<std::uint32_t>(number);
    hop.keys[number] = slot.key;
    if (next.counts != nullptr) {
      next.counts[before[e]] = count_of(next.rules, choice_of_key(next, slot.key));
    }
  }
  if (next.counts != nullptr && e >= added && e <= next.most_targets) next.counts[e] = 0;
  if (e > 0) return;
  hop.vertices[2] = hop.vertices[1] + added;
  hop.edges[1] = hop.edges[0] + hop.counts[targets];
  hop.offsets[hop.vertices[1]] = hop.edges[1];
}

template <class Key>
__global__ void look_up_kernel(const Hop<Key> hop, const std::int64_t* first,
                               const std::int64_t* last) {
  const std::int64_t e = *first + thread_number();
  if (e < *last) hop.sources[e] = hop.table.slots[hop.sources[e]].number;
}

template <class Key>
__global__ void split_keys_kernel(const Key* keys, const std::int64_t* count, VertexId* vertices,
                                  VertexId* trees) {
  const std::int64_t i = thread_number();
  if (i >= *count) return;
  vertices[i] = vertex_of(keys[i]);
  if (trees != nullptr) trees[i] = static_cast<VertexId>(tree_of(keys[i]));
}

}  // namespace

template <class Key>
void begin_batch(const Hop<Key>& hop, const VertexId* seeds, std::int64_t num_seeds,
                 Stream stream) {
  cuda::launch_each(begin_batch_kernel<Key>, num_seeds + 1, stream, hop, seeds, num_seeds);
}

template <class Key>
void enter_vertices(const Hop<Key>& hop, std::int64_t most_vertices, Stream stream) {
  const std::size_t slots = std::size_t{1} << (64 - hop.table.shift);
  cuda_check(cudaMemsetAsync(hop.table.slots, 0xff, slots * sizeof(Slot<Key>), cuda::raw(stream)),
             "emptying a table");
  cuda::launch_each(enter_vertices_kernel<Key>, most_vertices, stream, hop);
}

template <class Key>
void draw_edges(const Hop<Key>& hop, Stream stream) {
  const bool draws = hop.rules.fan_out > 0 && !hop.rules.replace;
  if (draws && hop.lists.weights != nullptr) {
    cuda::launch_each(draw_weighted_sets_kernel<Key>, hop.most_targets * warp_lanes, stream, hop);
  }
  cuda::launch_each(draw_edges_kernel<Key>, std::max(hop.most_edges, hop.most_targets), stream,
                    hop);
}

template <class Key>
void mark_firsts(const Hop<Key>& hop, std::int32_t* firsts, Stream stream) {
  cuda::launch_each(mark_firsts_kernel<Key>, hop.most_edges + 1, stream, hop, firsts);
}

template <class Key>
void append_vertices(const Hop<Key>& hop, const std::int32_t* before, const Hop<Key>& next,
                     Stream stream) {
  cuda::launch_each(append_vertices_kernel<Key>, hop.most_edges + 1, stream, hop, before, next);
}

template <class Key>
void look_up(const Hop<Key>& hop, const std::int64_t* first, const std::int64_t* last,
             std::int64_t most_edges, Stream stream) {
  cuda::launch_each(look_up_kernel<Key>, most_edges, stream, hop, first, last);
}

template <class Key>
void split_keys(const Key* keys, const std::int64_t* count, std::int64_t most, VertexId* vertices,
                VertexId* trees, Stream stream) {
  cuda::launch_each(split_keys_kernel<Key>, most, stream, keys, count, vertices, trees);
}

#define TESSERA_HOP(Key)                                                                         \
  template void begin_batch(const Hop<Key>&, const VertexId*, std::int64_t, Stream);             \
  template void enter_vertices(const Hop<Key>&, std::int64_t, Stream);                           \
  template void draw_edges(const Hop<Key>&, Stream);                                             \
  template void mark_firsts(const Hop<Key>&, std::int32_t*, Stream);                             \
  template void append_vertices(const Hop<Key>&, const std::int32_t*, const Hop<Key>&, Stream);  \
  template void look_up(const Hop<Key>&, const std::int64_t*, const std::int64_t*, std::int64_t, \
                        Stream);                                                                 \
  template void split_keys(const Key*, const std::int64_t*, std::int64_t, VertexId*, VertexId*,  \
                           Stream)
TESSERA_HOP(std::uint32_t);
TESSERA_HOP(std::uint64_t);
#undef TESSERA_HOP

}  // namespace tessera::sample::on_gpu
