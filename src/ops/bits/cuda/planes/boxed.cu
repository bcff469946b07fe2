// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/bulk_copy.cuh"
#include "cuda/overlap.cuh"
#include "cuda/share_registers.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/plane_counts.cuh"
#include "ops/bits/cuda/planes/maps.hpp"
#include "ops/bits/cuda/store_sums.cuh"

/// Planes whose chunks come as boxes that one warp asks for. Blocks with the same columns bring B
/// for themselves: it comes out of L2 again, and no block waits for another.
namespace tessera::ops {

/// Boxes of 32 words, of as many rows as a block has of either.
struct PlaneMaps {
  CUtensorMap a;
  CUtensorMap b;
};

template <class Policy>
class BoxedPlanes {
 public:
  static constexpr int consumers = Policy::groups * 4;  ///< warps
  /// One warp asks for operands. Where warps hold A it is one of four, whose registers they take.
  static constexpr int threads = (consumers + (Policy::holds_a ? 4 : 1)) * 32;

  __device__ BoxedPlanes(const BitProduct& product, const PlaneMaps& maps, std::uint32_t barriers,
                         std::uint32_t memory)
      : product_(product), maps_(maps), barriers_(barriers), slots_{memory} {
    const int all = static_cast<int>((product.a.row_words + chunk_words - 1) / chunk_words);
    const auto tile = static_cast<int>(blockIdx.x);
    range_ = part_range(product.index, all, tile, 0, 1);
    turns_ = range_.count * product.b.planes;
    first_row_ = tile * Policy::rows;
    first_col_ = static_cast<int>(blockIdx.y) * Policy::width;
  }

  __device__ void run() const {
    // Of a lane for all, so that the compiler sees whole warps go one way.
    const int warp = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x) / 32, 0);
    const bool asks = threadIdx.x == consumers * 32;
    if (asks) {
      cuda::fetch_map(maps_.a);
      cuda::fetch_map(maps_.b);
      init_barriers();
    }
    __syncthreads();
    // Of one plane B would wait behind all chunks of A.
    const bool a_first = product_.a_stays && Policy::holds_a;
    if (asks && a_first) start(true, false);
    cuda::wait_for_previous();
    if (warp < consumers) {
      if constexpr (Policy::holds_a) cuda::take_registers<232>();
      consume();
    } else {
      if constexpr (Policy::holds_a) cuda::give_registers<40>();
      if (asks) {
        start(!a_first, true);
        produce();
      }
    }
  }

 private:
  using Turn = PlanesTurn<Policy::run>;
  static constexpr int slots = Policy::b_slots;

  __device__ Turn first_turn() const { return {0, 0, product_.b.planes - 1}; }
  __device__ std::uint32_t full(int slot) const {
    return barriers_ + static_cast<std::uint32_t>(slot * 8);
  }
  __device__ std::uint32_t empty(int slot) const {
    return barriers_ + static_cast<std::uint32_t>((slots + slot) * 8);
  }

  __device__ void init_barriers() const {
    for (int slot = 0; slot < slots; ++slot) {
      cuda::init_barrier(full(slot), 1);
      cuda::init_barrier(empty(slot), consumers);
    }
    cuda::publish_barriers();
  }

  /// Asks for the first turns: A that stays before B, which other kernels may be writing still.
  __device__ void start(bool a, bool b) const {
    Turn turn = first_turn();
    for (int i = 0; i < min(slots, turns_); ++i) {
      if (a) ask_a(turn, i);
      if (b) ask_b(turn, i);
      turn.advance(range_.count, product_.b.planes);
    }
  }

  /// All further turns. A slot is free when its warps have arrived.
  __device__ void produce() const {
    Turn turn = first_turn();
    for (int i = 0; i < min(slots, turns_); ++i) turn.advance(range_.count, product_.b.planes);
    int slot = 0;
    int parity = 0;
    for (int i = slots; i < turns_; ++i) {
      cuda::wait_for_barrier(empty(slot), parity);
      ask_a(turn, slot);
      ask_b(turn, slot);
      turn.advance(range_.count, product_.b.planes);
      if (++slot == slots) {
        slot = 0;
        parity ^= 1;
      }
    }
  }

  /// The chunk of A, with the first plane that it meets, and what is to come in this turn.
  __device__ void ask_a(const Turn& turn, int slot) const {
    const bool comes = turn.plane == product_.b.planes - 1;
    cuda::expect_bytes(full(slot), ((comes ? Policy::rows : 0) + Policy::width) * chunk_bytes);
    if (!comes) return;
    cuda::copy_box(slots_.a_slot(turn.at()), maps_.a, word_of(turn), first_row_, 0, full(slot));
  }
  __device__ void ask_b(const Turn& turn, int slot) const {
    cuda::copy_box(slots_.b_slot(slot), maps_.b, word_of(turn), first_col_, turn.plane, full(slot));
  }
  __device__ int word_of(const Turn& turn) const {
    const int index = range_.first + turn.at();
    return (product_.index.parts == nullptr ? index : product_.index.parts[index]) * chunk_words;
  }

  __device__ void consume() const {
    PlaneCounts<Policy> counts;
    if constexpr (Policy::holds_a) {
      count_held(counts);
    } else {
      count(counts);
    }
    counts.finish();
    store_tile<Policy::width>(product_, first_row_ + static_cast<int>(threadIdx.x) / 128 * 64,
                              first_col_, counts.sums);
  }

  __device__ void count(PlaneCounts<Policy>& counts) const {
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    Turn turn = first_turn();
    int slot = 0;
    int parity = 0;
    int before = 0;
    counts.begin();
    for (int i = 0; i < turns_; ++i) {
      cuda::wait_for_barrier(full(slot), parity);
      counts.add(turn, range_.count, slots_.a_slot(turn.at()), slots_.b_slot(slot));
      // The products of the turn before are done.
      if (i > 0 && lane == 0) cuda::arrive_at(empty(before));
      turn.advance(range_.count, product_.b.planes);
      before = slot;
      if (++slot == slots) {
        slot = 0;
        parity ^= 1;
      }
    }
  }

  /// Where the next turn's B lies, and which turn's may be read still.
  struct Place {
    int slot = 0;
    int parity = 0;
    int read = -1;

    __device__ void advance() {
      read = slot;
      if (++slot < slots) return;
      slot = 0;
      parity ^= 1;
    }
  };

  __device__ void count_held(PlaneCounts<Policy>& counts) const {
    Place place;
    counts.begin();
    for (int first = 0; first < range_.count; first += Policy::run) {
      const int chunks = min(Policy::run, range_.count - first);
      if constexpr (Policy::order == PlanesOrder::twin) {
        count_plane<true>(counts, first, chunks, 1, place);
        count_plane<false>(counts, first, chunks, 0, place);
      } else {
        int plane = product_.b.planes - 1;
        count_plane<true>(counts, first, chunks, plane, place);
        while (--plane >= 0) count_plane<false>(counts, first, chunks, plane, place);
      }
    }
  }

  /// One plane of a run. With the highest one A comes into registers.
  template <bool highest>
  __device__ void count_plane(PlaneCounts<Policy>& counts, int first, int chunks, int plane,
                              Place& place) const {
#pragma unroll
    for (int chunk = 0; chunk < Policy::run; ++chunk) {
      if (chunk == chunks) break;
      cuda::wait_for_barrier(full(place.slot), place.parity);
      if constexpr (highest) counts.hold(chunk, slots_.a_slot(first + chunk));
      counts.template add_held<highest>(chunk, slots_.b_slot(place.slot));
      leave(place.read);
      place.advance();
    }
    if (!counts.end_held(plane)) return;
    leave(place.read);
    place.read = -1;
  }

  /// None of this warp's products reads a slot any more.
  __device__ void leave(int slot) const {
    if (slot >= 0 && threadIdx.x % 32 == 0) cuda::arrive_at(empty(slot));
  }

  const BitProduct& product_;
  const PlaneMaps& maps_;
  std::uint32_t barriers_;
  PlanesMemory<Policy> slots_;
  PartRange range_;
  int turns_;
  int first_row_;
  int first_col_;
};

template <class Policy>
__global__ __launch_bounds__(BoxedPlanes<Policy>::threads,
                             1) void multiply_boxed_planes(const BitProduct product,
                                                           const __grid_constant__ PlaneMaps maps) {
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ __align__(1024) char shared[];
  __shared__ __align__(8) std::uint64_t barriers[2 * Policy::b_slots];
  cuda::let_next_begin();
  BoxedPlanes<Policy>(product, maps, cuda::shared_address(barriers),
                      (cuda::shared_address(shared) + 1023u) & ~1023u)
      .run();
#else
  __trap();
#endif
}

namespace {

template <class Policy>
constexpr BitFunction boxed_function() {
  return {Policy::rows,
          Policy::width,
          chunk_words,
          false,
          [](const BitProduct&) {
            cuda::allow_shared(multiply_boxed_planes<Policy>, planes_shared_bytes<Policy>);
          },
          [](const BitProduct& product, int, Stream stream) {
            const PlaneMaps maps{plane_map(product.a, Policy::rows),
                                 plane_map(product.b, Policy::width)};
            cuda::launch_overlapped(
                multiply_boxed_planes<Policy>, bit_grid(product, Policy::rows, Policy::width, 1),
                BoxedPlanes<Policy>::threads, std::size_t{planes_shared_bytes<Policy>}, stream,
                product, maps);
          }};
}

}  // namespace

const BitFunction boxed_planes[3] = {
    boxed_function<PlanesPolicy<2, 128, PlanesOrder::one, 7, 7>>(),
    boxed_function<PlanesPolicy<2, 128, PlanesOrder::twin, 4, 8, true>>(),
    boxed_function<PlanesPolicy<2, 128, PlanesOrder::runs, 4, 8, true>>(),
};

}  // namespace tessera::ops
