// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/precision.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/sddmm/cuda/tall/feed.cuh"
#include "ops/sddmm/cuda/tall/store.cuh"

/// Dot products of both ends of every edge on Hopper's matrix units, which take 64 rows at once.
///
/// A block computes tiles of `height` rows by 64 columns. Rows of U and V are dot products'
/// operands as they lie in memory, so they are copied as they are, into a ring of slots that holds
/// 64 rows each: those of a window, which pass into registers, then those of its tiles, and so on
/// for the next window without a seam. While one slot is used, all others are on their way.
///
///     slots     U | V V V | U | V | U | V V ...
///               window 0    w. 1    window 2
namespace tessera::ops {

template <class Shape>
using Fragments = std::uint32_t[Shape::steps][4];

/// The warp's 16 rows of U in one chunk.
template <class Shape>
__device__ void take_rows(std::uint32_t slot, Fragments<Shape>& fragments) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane % 16;
#pragma unroll
  for (int step = 0; step < Shape::steps; ++step) {
    cuda::load_fragment(fragments[step], slot + Shape::offset(row, 2 * step + lane / 16));
  }
}

/// Adds one chunk to the products, without waiting for it.
template <class Shape>
__device__ void multiply(std::uint32_t slot, std::uint32_t low_slot, Fragments<Shape>& fragments,
                         float (&products)[32], bool adds) {
  using T = typename Shape::T;
  constexpr int steps_per_block = Shape::block_bytes / 64 / 32;
  std::uint32_t lows[Shape::splits ? Shape::steps : 1][4];
  if constexpr (Shape::splits) {
#pragma unroll
    for (int i = 0; i < 4 * Shape::steps; ++i) {
      lows[i / 4][i % 4] =
          __float_as_uint(RowLoader<Shape>::low(__uint_as_float(fragments[i / 4][i % 4])));
    }
  }
#pragma unroll
  for (int step = 0; step < Shape::steps; ++step) {
    cuda::keep_in_place(fragments[step]);
    if constexpr (Shape::splits) cuda::keep_in_place(lows[step]);
  }
  const std::uint64_t high = Shape::Layout::descriptor(slot);
  const std::uint64_t low = Shape::Layout::descriptor(low_slot);
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < Shape::steps; ++step) {
    const std::uint64_t at = step / steps_per_block * std::uint64_t{Shape::block_bytes >> 4} +
                             step % steps_per_block * cuda::row_step;
    cuda::wgmma_rows<T>(products, fragments[step], high + at, step > 0 || adds ? 1 : 0);
    if constexpr (Shape::splits) {
      cuda::wgmma_rows<T>(products, lows[step], high + at, 1);
      cuda::wgmma_rows<T>(products, fragments[step], low + at, 1);
    }
  }
  cuda::wgmma_commit();
}

template <class Shape>
__device__ void compute_tiles(const TallDotsLaunch& launch, char* shared) {
  using Feed = TileFeed<Shape>;
  constexpr int slots = Shape::num_slots;
  const std::uint32_t address = cuda::shared_address(shared);
  Feed feed(launch, shared + Shape::tiles_at);
  const RowLoader<Shape> loader(launch, address);
  EdgeStore<Shape> store(launch, shared + Shape::results_at);

#pragma unroll 1
  for (int i = 0; i < 2 * slots; ++i) feed.put();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  typename Feed::Place loading;
  const auto load_next = [&](int slot) {
    if (feed.exists(loading.number)) {
      const SlotContent part = feed.part(loading);
      loader.load(feed.tile(loading.number), part, slot);
      loading = Feed::after(loading, part.last);
    }
    // So far ahead that a tile has arrived, and all threads know, when its first rows are asked
    // for.
    if (feed.num_put() < loading.number + slots) feed.put();
    cuda::commit_copies();
  };
#pragma unroll 1
  for (int slot = 0; slot + 1 < slots; ++slot) load_next(slot);
  if (feed.exists(0)) store.fetch(feed.tile(0));

  Fragments<Shape> fragments[Shape::held_chunks];
  float products[32];
  int plane = 0;
  typename Feed::Place now;
  for (int slot = 0; feed.exists(now.number); slot = slot + 1 < slots ? slot + 1 : 0) {
    cuda::wait_for_copies<slots - 2>();
    const SlotContent part = feed.part(now);
    if constexpr (Shape::splits) {
      if (!part.targets) loader.split(slot, plane);
    }
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    const std::uint32_t at = address + static_cast<std::uint32_t>(slot * Shape::slot_bytes);
    const std::uint32_t low =
        address + static_cast<std::uint32_t>(Shape::low_at + plane * Shape::slot_bytes);
    const int held = Shape::holds ? part.chunk : 0;
    const bool own = static_cast<int>(threadIdx.x) / 128 == part.group;
    const int freed = slot == 0 ? slots - 1 : slot - 1;
    // Products begin and end on the same path: the compiler would let each wait for the one before.
#pragma unroll
    for (int chunk = 0; chunk < Shape::held_chunks; ++chunk) {
      if (chunk != held) continue;
      if (part.targets) {
        if (own) take_rows<Shape>(at, fragments[chunk]);
        load_next(freed);
      } else {
        multiply<Shape>(at, low, fragments[chunk], products, part.chunk > 0);
        load_next(freed);
        cuda::wgmma_wait();
        cuda::keep_in_place(products);
        plane ^= 1;
      }
    }
    if (part.last) {
      store.store(feed.tile(now.number), products);
      if (feed.exists(now.number + 1)) store.fetch(feed.tile(now.number + 1));
    }
    now = Feed::after(now, part.last);
  }
}

inline constexpr int slot_alignment = 1024;

template <class Shape>
__global__ __launch_bounds__(Shape::threads) void tall_dots(const TallDotsLaunch launch) {
#ifdef TESSERA_HAS_WGMMA
  cuda::begin_overlapped();
  extern __shared__ char shared[];
  const unsigned past = cuda::shared_address(shared) % slot_alignment;
  char* const first_slot = shared + (past == 0 ? 0 : slot_alignment - past);
  compute_tiles<Shape>(launch, first_slot);
#else
  __trap();
#endif
}

template <class Shape>
void launch_tall_dots(const TallDotsLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.num_workers), static_cast<unsigned>(launch.heads));
  cuda::launch_overlapped(tall_dots<Shape>, grid, Shape::threads,
                          std::size_t{Shape::shared_bytes + slot_alignment}, stream, launch);
}

template <class Shape>
int resident_tall_dots() {
  return cuda::resident_blocks(tall_dots<Shape>, Shape::threads,
                               Shape::shared_bytes + slot_alignment);
}

template <class Shape>
constexpr TallDotsFunction make_tall_dots() {
  return {launch_tall_dots<Shape>, resident_tall_dots<Shape>};
}

/// One for each of `tall_dot_bytes`. Narrow rows need more slots to have as much on its way; fp32
/// has a second plane, which leaves less room for slots.
template <class T>
constexpr std::array<TallDotsFunction, tall_dot_bytes.size()> make_tall_dots_functions() {
  constexpr int part = sizeof(T) == 2 ? 256 : 128;
  constexpr int slots = sizeof(T) == 2 ? 3 : 4;
  return {make_tall_dots<TallDotShape<T, 32, 1, 6>>(),
          make_tall_dots<TallDotShape<T, 64, 1, 6>>(),
          make_tall_dots<TallDotShape<T, 128, 1, 4>>(),
          make_tall_dots<TallDotShape<T, part, 256 / part, slots>>(),
          make_tall_dots<TallDotShape<T, part, 512 / part, slots>>(),
          make_tall_dots<TallDotShape<T, part, 0, slots>>()};
}

template <Precision precision>
std::span<const TallDotsFunction> TallDotsKernels<precision>::get() {
  static constexpr auto functions = make_tall_dots_functions<cuda::Stored<precision>>();
  return functions;
}

}  // namespace tessera::ops
