// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/wgmma.cuh"
#include "ops/spmm/cuda/tall_instances.hpp"
#include "ops/spmm/cuda/tall_loaders.cuh"
#include "ops/spmm/cuda/tall_pattern.cuh"
#include "ops/spmm/cuda/tall_store.cuh"

/// Sums over tall windows on Hopper's matrix units.
///
/// A block computes `height` rows at once, 64 for each group of four warps. The rows of X that a
/// window uses are gathered once into shared memory and multiplied by all of the window's rows; the
/// pattern is expanded from bits in registers. Blocks stay and go through a list of pieces
/// (tiles/pieces.hpp) without a seam. While stage k is multiplied,
///
///     rows of X of stages k + 1 and k + 2        and columns and bits of k + 3 and k + 4
///
/// are under way, be it for the same window or for another.
namespace tessera::ops {

inline constexpr int ring_records = 5;
inline constexpr int stage_alignment = 1024;

template <class Loader>
int tall_shared_bytes(int height) {
  return stage_alignment + Loader::num_stages * Loader::stage_bytes +
         ring_records * Loader::Record::bytes(height) + StageFeed<typename Loader::Record>::bytes;
}

/// Adds one stage to the sums, without waiting for it.
template <class Loader>
__device__ void multiply(typename Loader::Record record, int height, std::uint32_t stage,
                         float (&sums)[Loader::width / 2]) {
  using Record = typename Loader::Record;
  using Layout = typename Loader::Layout;
  constexpr int tiles = Record::max_tiles;
  constexpr int steps = Record::max_steps < 4 ? Record::max_steps : 4;
  constexpr int parts = Loader::scaled ? 2 : 1;
  const int num_steps = record.head().num_steps;
  const auto thread = static_cast<int>(threadIdx.x);
  std::uint32_t fragments[parts][tiles][steps][4];
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    // A tile that the stage does not use has old words.
    std::uint32_t word = tile * 4 < num_steps ? record.words()[tile * 2 * height + thread] : 0;
    if constexpr (steps < 4) word >>= record.head().bit_shift;
    if constexpr (Loader::scaled) {
      expand_scaled(word, record.scales() + tile * 64, fragments[0][tile], fragments[1][tile]);
    } else {
      expand_pattern(word, fragments[0][tile]);
    }
  }
#pragma unroll
  for (int i = 0; i < parts * tiles * steps; ++i) {
    cuda::keep_in_place(fragments[i / (tiles * steps)][i / steps % tiles][i % steps]);
  }
  const std::uint64_t descriptor = cuda::wgmma_descriptor(stage, Layout::block_bytes);
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < tiles * steps; ++step) {
#pragma unroll
    for (int plane = 0; plane < Loader::planes; ++plane) {
      const std::uint64_t b =
          descriptor + step * cuda::wgmma_step + plane * std::uint64_t{Layout::plane_bytes >> 4};
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        cuda::wgmma<typename Loader::Element>(sums, fragments[part][step / steps][step % steps], b);
      }
    }
  }
  cuda::wgmma_commit();
}

template <class Loader>
__device__ void sum_pieces(const TallLaunch& launch, char* stages) {
  using Record = typename Loader::Record;
  const int record_bytes = Record::bytes(launch.height);
  char* const ring = stages + Loader::num_stages * Loader::stage_bytes;
  const auto record = [&](int place) {
    return Record{ring + (place < ring_records ? place : place - ring_records) * record_bytes};
  };
  const std::uint32_t stages_address = cuda::shared_address(stages);
  const bool feeds = threadIdx.x < 32;
  StageFeed<Record> feed(launch, ring + ring_records * record_bytes);
  if (feeds) feed.start();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  if (feeds) {
    __syncwarp();
    feed.put(record(0));
    feed.put(record(1));
  }
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  Loader loader(launch, stages_address);
  loader.start(record(0));
  if (feeds) feed.put(record(2));
  cuda::commit_copies();
  loader.prime(record(1));
  if (feeds) feed.put(record(3));
  cuda::commit_copies();

  float sums[Loader::width / 2] = {};
  for (int place = 0, stage = 0;;) {
    // All but the latest group: the rows of this stage, and the record of the stage after next.
    cuda::wait_for_copies<1>();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    const StageHead head = record(place).head();
    if (head.kind == StageKind::end) break;
    cuda::keep_in_place(sums);
    multiply<Loader>(record(place), launch.height,
                     stages_address + static_cast<std::uint32_t>(stage * Loader::stage_bytes),
                     sums);
    loader.advance(record(place + 1), record(place + 2), stage);
    if (feeds) feed.put(record(place + 4));
    cuda::commit_copies();
    cuda::wgmma_wait();
    cuda::keep_in_place(sums);
    if (head.kind == StageKind::last) {
      TallStore<typename Loader::Source, Loader::width, Loader::aligned>(launch, head)(sums);
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    place = place + 1 < ring_records ? place + 1 : 0;
    stage = stage + 1 < Loader::num_stages ? stage + 1 : 0;
  }
}

template <class Loader>
__global__ __launch_bounds__(Loader::max_threads,
                             Loader::min_blocks) void sum_windows(const TallLaunch launch) {
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ char shared[];
  const unsigned past = cuda::shared_address(shared) % stage_alignment;
  sum_pieces<Loader>(launch, shared + (past == 0 ? 0 : stage_alignment - past));
#else
  __trap();
#endif
}

template <class Loader>
void launch_tall(const TallLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.num_workers),
                  cuda::num_blocks(launch.features, Loader::width));
  if (grid.x == 0 || grid.y == 0) return;
  const auto threads = static_cast<unsigned>(launch.height * 2);
  const auto bytes = static_cast<std::size_t>(tall_shared_bytes<Loader>(launch.height));
  sum_windows<Loader><<<grid, threads, bytes, cuda::raw(stream)>>>(launch);
  cuda_check(cudaGetLastError(), "starting a kernel");
  const dim3 cut_grid(static_cast<unsigned>(launch.num_cut_windows),
                      static_cast<unsigned>(launch.height / cut_rows_per_block));
  cuda::launch(add_pieces<typename Loader::Source>, cut_grid, 32 * cut_rows_per_block, stream,
               launch);
}

/// Blocks that the current GPU holds at once; also lets the kernel have the shared memory it needs.
template <class Loader>
int resident_tall_blocks(int height) {
  const int bytes = tall_shared_bytes<Loader>(height);
  cuda_check(
      cudaFuncSetAttribute(sum_windows<Loader>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      "asking for shared memory");
  int device = 0, processors = 0, blocks = 0;
  cuda_check(cudaGetDevice(&device), "reading the current GPU");
  cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
             "reading the number of processors");
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum_windows<Loader>, height * 2,
                                                           static_cast<std::size_t>(bytes)),
             "reading the occupancy of a kernel");
  return processors * blocks;
}

template <class Loader>
constexpr TallFunction make_tall_function() {
  return {Loader::width, launch_tall<Loader>, resident_tall_blocks<Loader>};
}

}  // namespace tessera::ops
