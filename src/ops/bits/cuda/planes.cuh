// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/overlap.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/store.cuh"

/// One plane of bits times several, on Hopper's matrix units: a block has 64 rows for each of its
/// warp groups and `width` columns, and goes over K in chunks of 1024 bits, which a line of shared
/// memory holds. A chunk of A is loaded once and meets the planes of B from the highest to the
/// lowest.
namespace tessera::ops {

enum class PlanesOrder {
  one,   ///< a single plane
  twin,  ///< two planes, each with sums of its own
  runs,  ///< four chunks meet one plane, then the next; what was counted doubles in between
};

template <int groups_, int width_, PlanesOrder order_, int a_slots_, int b_slots_>
struct PlanesPolicy {
  static constexpr PlanesOrder order = order_;
  static constexpr int groups = groups_;  ///< warp groups
  static constexpr int width = width_;    ///< columns of a block
  /// Chunks that meet one plane before the next plane comes.
  static constexpr int run = order == PlanesOrder::runs ? 4 : 1;
  static constexpr int a_slots = a_slots_;  ///< chunks of A in shared memory
  static constexpr int b_slots = b_slots_;  ///< chunks of one plane of B in shared memory
};

inline constexpr int chunk_words = 32;
inline constexpr int chunk_bytes = 128;

template <class Policy>
inline constexpr int planes_shared_bytes =
    (Policy::a_slots * Policy::groups * 64 + Policy::b_slots * Policy::width) * chunk_bytes + 1024;

/// The place in the order in which planes and chunks meet.
template <int run>
struct PlanesTurn {
  int first = 0;  ///< chunk that the run began with
  int chunk = 0;  ///< of the run
  int plane = 0;

  __device__ int at() const { return first + chunk; }
  __device__ bool ends_plane(int chunks) const {
    return chunk + 1 == run || first + chunk + 1 == chunks;
  }
  __device__ void advance(int chunks, int planes) {
    if (!ends_plane(chunks)) {
      ++chunk;
      return;
    }
    chunk = 0;
    if (--plane >= 0) return;
    plane = planes - 1;
    first += run;
  }
};

template <class Policy>
class PlanesLoader {
 public:
  static constexpr int threads = Policy::groups * 128;
  static constexpr int rows = Policy::groups * 64;
  static constexpr int rows_at_once = threads / 8;

  __device__ PlanesLoader(const BitProduct& product, std::int64_t first_row, std::int64_t first_col,
                          const std::int32_t* parts, int first_part, std::uint32_t memory)
      : product_(product),
        parts_(parts),
        first_part_(first_part),
        row_(static_cast<int>(threadIdx.x) / 8),
        unit_(static_cast<int>(threadIdx.x) % 8),
        first_row_(first_row),
        first_col_(first_col),
        memory_(memory) {}

  __device__ std::uint32_t a_slot(int chunk) const {
    return memory_ + static_cast<std::uint32_t>(chunk % Policy::a_slots * rows * chunk_bytes);
  }
  __device__ std::uint32_t b_slot(int slot) const {
    return memory_ + static_cast<std::uint32_t>(Policy::a_slots * rows * chunk_bytes +
                                                slot * Policy::width * chunk_bytes);
  }

  /// The chunk of A, with the first plane that it meets.
  __device__ void load_a(const PlanesTurn<Policy::run>& turn) const {
    if (turn.plane != product_.b.planes - 1) return;
    load_rows<rows>(a_slot(turn.at()), product_.a, 0, first_row_, word_of(turn));
  }
  __device__ void load_b(const PlanesTurn<Policy::run>& turn, int slot) const {
    load_rows<Policy::width>(b_slot(slot), product_.b, turn.plane, first_col_, word_of(turn));
  }

 private:
  /// This thread's first word of a row.
  __device__ std::int64_t word_of(const PlanesTurn<Policy::run>& turn) const {
    const int index = first_part_ + turn.at();
    const std::int64_t chunk = parts_ == nullptr ? index : parts_[index];
    return chunk * chunk_words + unit_ * 4;
  }

  template <int count>
  __device__ void load_rows(std::uint32_t slot, const BitRows& from, int plane, std::int64_t first,
                            std::int64_t word) const {
    using Layout = cuda::RowLayout<chunk_bytes>;
    const std::uint32_t* at =
        from.words + plane * from.plane_words + (first + row_) * from.row_words + word;
#pragma unroll
    for (int row = 0; row < count; row += rows_at_once) {
      if (count % rows_at_once != 0 && row + row_ >= count) break;
      const std::uint32_t to = slot + Layout::offset(row + row_, unit_);
      if (first + row + row_ < from.rows && word < from.row_words) {
        cuda::copy_16_async(to, at);
      } else {
        cuda::zero_16_async(to, from.words);
      }
      at += rows_at_once * from.row_words;
    }
  }

  const BitProduct& product_;
  const std::int32_t* parts_;
  int first_part_;
  int row_;
  int unit_;
  std::int64_t first_row_;
  std::int64_t first_col_;
  std::uint32_t memory_;
};

/// The chunks of this block's share of K: those with any bit in its rows, cut evenly over the
/// blocks of its cluster.
struct PartRange {
  int first = 0;
  int count = 0;
};
__device__ inline PartRange part_range(const BitIndex& index, int all_parts, int tile, int rank,
                                       int ranks) {
  const int begin = index.offsets == nullptr ? 0 : index.offsets[tile];
  const int count = index.offsets == nullptr ? all_parts : index.offsets[tile + 1] - begin;
  const int each = (count + ranks - 1) / ranks;
  const int first = min(rank * each, count);
  return {begin + first, min(each, count - first)};
}

template <int count>
__device__ void count_chunk(std::int32_t (&counts)[count], std::uint64_t a, std::uint64_t b) {
  keep_in_place(counts);
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    wgmma_count(counts, a + step * cuda::row_step, b + step * cuda::row_step, 1);
  }
  cuda::wgmma_commit();
}

template <class Policy>
__device__ void multiply_planes(const BitProduct& product, char* memory) {
  constexpr int count = Policy::width / 2;
  constexpr int ahead = Policy::b_slots - 2;
  static_assert(Policy::a_slots >=
                    (ahead + Policy::run - 1) / Policy::run * Policy::run + Policy::run ||
                Policy::run == 1);
  using Layout = cuda::RowLayout<chunk_bytes>;
  const auto cluster = cooperative_groups::this_cluster();
  const int ranks = static_cast<int>(cluster.num_blocks());
  const int tile = static_cast<int>(blockIdx.x) / ranks;
  const std::int64_t first_row = std::int64_t{tile} * Policy::groups * 64;
  const std::int64_t first_col = std::int64_t{blockIdx.y} * Policy::width;
  const int all_chunks = static_cast<int>((product.a.row_words + chunk_words - 1) / chunk_words);
  const PartRange range =
      part_range(product.index, all_chunks, tile, static_cast<int>(cluster.block_rank()), ranks);
  const int planes = product.b.planes;
  const int turns = range.count * planes;
  const int group = static_cast<int>(threadIdx.x) / 128;

  const std::uint32_t base = (cuda::shared_address(memory) + 1023u) & ~1023u;
  const PlanesLoader<Policy> loader(product, first_row, first_col, product.index.parts, range.first,
                                    base);
  const PlanesTurn<Policy::run> start{0, 0, planes - 1};
  // An A that stays is there before B is.
  PlanesTurn<Policy::run> next = start;
  for (int turn = 0; product.a_stays && turn < min(ahead, turns); ++turn) {
    loader.load_a(next);
    next.advance(range.count, planes);
  }
  cuda::wait_for_previous();
  next = start;
  for (int turn = 0; turn < ahead; ++turn) {
    if (turn < turns) {
      if (!product.a_stays) loader.load_a(next);
      loader.load_b(next, turn);
      next.advance(range.count, planes);
    }
    cuda::commit_copies();
  }

  constexpr bool twin = Policy::order == PlanesOrder::twin;
  constexpr bool runs = Policy::order == PlanesOrder::runs;
  std::int32_t counts[count] = {};
  // Counts of the higher plane, or of runs that are over.
  std::int32_t others[twin || runs ? count : 1] = {};
  PlanesTurn<Policy::run> now = start;
  int slot = 0;
  int next_slot = ahead;
  for (int turn = 0; turn < turns; ++turn) {
    cuda::wait_for_copies<ahead - 1>();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    if (turn + ahead < turns) {
      loader.load_a(next);
      loader.load_b(next, next_slot);
      next.advance(range.count, planes);
    }
    cuda::commit_copies();
    const std::uint64_t a = Layout::descriptor(
        loader.a_slot(now.at()) + static_cast<std::uint32_t>(group * 64 * chunk_bytes));
    const std::uint64_t b = Layout::descriptor(loader.b_slot(slot));
    if constexpr (twin) {
      if (now.plane == 1) {
        count_chunk(others, a, b);
      } else {
        count_chunk(counts, a, b);
      }
      wgmma_wait_for<1>();
    } else {
      count_chunk(counts, a, b);
      if (runs && now.ends_plane(range.count)) {
        wgmma_wait_for<0>();
        keep_in_place(counts);
        if (now.plane > 0) {
#pragma unroll
          for (int i = 0; i < count; ++i) counts[i] *= 2;
        } else if constexpr (runs) {
#pragma unroll
          for (int i = 0; i < count; ++i) {
            others[i] += counts[i];
            counts[i] = 0;
          }
        }
      } else {
        wgmma_wait_for<1>();
      }
    }
    now.advance(range.count, planes);
    slot = slot + 1 < Policy::b_slots ? slot + 1 : 0;
    next_slot = next_slot + 1 < Policy::b_slots ? next_slot + 1 : 0;
  }
  wgmma_wait_for<0>();
  keep_in_place(counts);
  keep_in_place(others);
  cuda::wait_for_copies<0>();
  __syncthreads();
  if constexpr (twin || runs) {
#pragma unroll
    for (int i = 0; i < count; ++i) counts[i] += twin ? 2 * others[i] : others[i];
  }
  store_sums<Policy::width, Policy::groups>(product, first_row, first_col, group, counts,
                                            reinterpret_cast<std::int32_t*>(memory));
}

template <class Policy>
__global__ __launch_bounds__(Policy::groups * 128,
                             1) void multiply_planes_kernel(const BitProduct product) {
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ __align__(1024) char shared[];
  cuda::let_next_begin();
  multiply_planes<Policy>(product, shared);
#else
  __trap();
#endif
}

}  // namespace tessera::ops
