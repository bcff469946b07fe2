// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/launch.hpp"

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

template <int groups_, int width_, PlanesOrder order_, int a_slots_, int b_slots_,
          bool holds_a_ = false>
struct PlanesPolicy {
  static constexpr PlanesOrder order = order_;
  static constexpr int groups = groups_;  ///< warp groups
  static constexpr int rows = groups * 64;
  static constexpr int width = width_;  ///< columns of a block
  /// Chunks that meet one plane before the next plane comes.
  static constexpr int run = order == PlanesOrder::runs ? 4 : holds_a_ ? 2 : 1;
  static constexpr int a_slots = a_slots_;  ///< chunks of A in shared memory
  static constexpr int b_slots = b_slots_;  ///< chunks of one plane of B in shared memory
  /// Whether warps keep the chunks of a run in registers: shared memory then gives B alone to all
  /// planes but the first.
  static constexpr bool holds_a = holds_a_;
};

inline constexpr int chunk_words = 32;
inline constexpr int chunk_bytes = 128;

template <class Policy>
inline constexpr int planes_shared_bytes =
    (Policy::a_slots * Policy::rows + Policy::b_slots * Policy::width) * chunk_bytes + 1024;

/// Where chunks lie in shared memory.
template <class Policy>
struct PlanesMemory {
  std::uint32_t base;  ///< a multiple of 1024

  __device__ std::uint32_t a_slot(int chunk) const {
    return base + static_cast<std::uint32_t>(chunk % Policy::a_slots * Policy::rows * chunk_bytes);
  }
  __device__ std::uint32_t b_slot(int slot) const {
    return base + static_cast<std::uint32_t>(
                      (Policy::a_slots * Policy::rows + slot * Policy::width) * chunk_bytes);
  }
};

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

/// The chunks of this block's share of K: those with any bit in its rows, cut evenly over the
/// blocks that share them.
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

/// What a thread counts.
template <class Policy>
class PlaneCounts {
 public:
  static constexpr int count = Policy::width / 2;

  /// Starts the products of a chunk of A with one of B. When it returns those of all turns before
  /// are done.
  __device__ void add(const PlanesTurn<Policy::run>& now, int chunks, std::uint32_t a_slot,
                      std::uint32_t b_slot) {
    using Layout = cuda::RowLayout<chunk_bytes>;
    const std::uint64_t a = Layout::descriptor(
        a_slot + static_cast<std::uint32_t>(threadIdx.x / 128 * 64 * chunk_bytes));
    const std::uint64_t b = Layout::descriptor(b_slot);
    if constexpr (twin) {
      if (now.plane == 1) {
        multiply(others_, a, b);
      } else {
        multiply(sums, a, b);
      }
      wgmma_wait_for<1>();
    } else {
      multiply(sums, a, b);
      if (runs && now.ends_plane(chunks)) {
        wgmma_wait_for<0>();
        keep_in_place(sums);
        end_plane(now.plane);
      } else {
        wgmma_wait_for<1>();
      }
    }
  }

  /// Before the first turn: counts are 0 before any product begins.
  __device__ void begin() {
    keep_in_place(sums);
    keep_in_place(others_);
  }
  /// Takes a chunk of A into registers, for all turns of its run.
  __device__ void hold(int chunk, std::uint32_t a_slot) {
    using Layout = cuda::RowLayout<chunk_bytes>;
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane % 16;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      cuda::load_fragment(held_[chunk][step], a_slot + Layout::offset(row, step * 2 + lane / 16));
    }
  }
  /// Starts the products of a chunk in registers with one of the highest or of another plane. When
  /// it returns those of all turns before are done.
  template <bool highest>
  __device__ void add_held(int chunk, std::uint32_t b_slot) {
    const std::uint64_t b = cuda::RowLayout<chunk_bytes>::descriptor(b_slot);
    if constexpr (twin && highest) {
      multiply(others_, held_[chunk], b);
    } else {
      multiply(sums, held_[chunk], b);
    }
    wgmma_wait_for<1>();
  }
  /// Ends a plane of a run of held chunks. Whether all products are done then.
  __device__ bool end_held(int plane) {
    if constexpr (!runs) {
      return false;
    } else {
      wgmma_wait_for<0>();
      keep_in_place(sums);
      end_plane(plane);
      return true;
    }
  }

  /// Now `sums` are complete.
  __device__ void finish() {
    wgmma_wait_for<0>();
    keep_in_place(sums);
    keep_in_place(others_);
    if constexpr (twin || runs) {
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += twin ? 2 * others_[i] : others_[i];
    }
  }

  std::int32_t sums[count] = {};

 private:
  static constexpr bool twin = Policy::order == PlanesOrder::twin;
  static constexpr bool runs = Policy::order == PlanesOrder::runs;

  __device__ static void multiply(std::int32_t (&counts)[count], std::uint64_t a, std::uint64_t b) {
    keep_in_place(counts);
    cuda::wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma_count(counts, a + step * cuda::row_step, b + step * cuda::row_step, 1);
    }
    cuda::wgmma_commit();
  }

  __device__ static void multiply(std::int32_t (&counts)[count], const std::uint32_t (&a)[4][4],
                                  std::uint64_t b) {
    keep_in_place(counts);
    cuda::wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma_count(counts, a[step], b + step * cuda::row_step);
    }
    cuda::wgmma_commit();
  }

  __device__ void end_plane(int plane) {
    if (plane > 0) {
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] *= 2;
    } else if constexpr (runs) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        others_[i] += sums[i];
        sums[i] = 0;
      }
    }
  }

  // Counts of the higher plane, or of runs that are over.
  std::int32_t others_[twin || runs ? count : 1] = {};
  std::uint32_t held_[Policy::holds_a ? Policy::run : 1][4][4];
};

}  // namespace tessera::ops
