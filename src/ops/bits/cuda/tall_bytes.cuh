// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/cuda/turned_rows.cuh"

/// Windows of 64 rows on Hopper's matrix units: the pattern is expanded to bytes in registers and
/// multiplied by lines of codes. Turn k
///
///     multiplies stage k - 1, turns stage k into lines, reads the bits of stage k + 1, asks for
///     the rows of stage k + 2, and reads which ones stage k + 3 has.
namespace tessera::ops {

/// The edges of a stage as bytes, and their products, which are under way when `start` returns.
template <class Shape>
class StageProducts {
 public:
  __device__ explicit StageProducts(const StageBits<Shape>& bits) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      expand_bytes(bits.of_tile[step / 2], step % 2, pattern_[step]);
    }
  }
  __device__ void start(std::uint32_t lines, std::int32_t (&sums)[Shape::num_sums]) {
    keep();
    keep_in_place(sums);
    cuda::wgmma_fence();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      wgmma_bytes(sums, pattern_[step],
                  cuda::RowLayout<128>::descriptor(lines + static_cast<std::uint32_t>(step * 32)));
    }
    cuda::wgmma_commit();
  }
  __device__ void finish(std::int32_t (&sums)[Shape::num_sums]) {
    wgmma_wait_for<0>();
    keep();
    keep_in_place(sums);
  }

 private:
  static constexpr int steps = Shape::rows / 32;

  __device__ void keep() {
#pragma unroll
    for (auto& step : pattern_) cuda::keep_in_place(step);
  }

  std::uint32_t pattern_[steps][4];
};

template <class Shape>
__device__ void sum_tall_stages(const ByteWindowsLaunch& launch, char* memory) {
  const std::uint32_t lines = cuda::shared_address(memory);
  const std::uint32_t rows = lines + Shape::rows_at;
  const StageRing<Shape> ring(launch.tall.work, memory + Shape::stages_at);
  ring.start();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  const RowTurner<Shape> turner(rows, lines);
  RowAsker<Shape> asker(launch.tall, rows);
  asker.read(ring.stage(0));
  const BitReader<Shape> reader(launch.tall.matrix.words);
  StageBits<Shape> bits;
  StageBits<Shape> next_bits = reader.read(ring.stage(0));
  cuda::wait_for_previous();
  for (int turn = 0; turn < 2; ++turn) {
    asker.ask(turn);
    cuda::commit_copies();
    asker.read(ring.stage(turn + 1));
  }

  ByteWindowSums<Shape> sums(launch);
  auto& own = reinterpret_cast<std::int32_t(&)[Shape::num_sums]>(sums.own);
  tiles::Stage before = {.end = tiles::StageEnd::none};
  for (int turn = 0, place = 0;; ++turn, place ^= 1) {
    // All but the latest group: the rows of this stage.
    cuda::wait_for_copies<1>();
    __syncthreads();
    StageProducts<Shape> products(bits);
    products.start(lines + static_cast<std::uint32_t>((place ^ 1) * Shape::line_bytes), own);
    turner.turn(place);
    // It may wait for all that is under way, so everything is read and asked for behind it.
    cuda::fence_shared_for_wgmma();
    __syncwarp();
    // To where the rows of this stage were, which nobody but this warp has read.
    asker.ask(place);
    ring.advance(turn);
    cuda::commit_copies();
    asker.read(ring.stage(turn + 3));
    bits = next_bits;
    next_bits = reader.read(ring.stage(turn + 1));
    products.finish(own);
    if (before.end != tiles::StageEnd::none) sums.finish(before);
    before = ring.stage(turn);
    if (before.end == tiles::StageEnd::work) break;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::min_blocks) void sum_tall_bytes(
    const ByteWindowsLaunch launch) {
#ifdef TESSERA_HAS_WGMMA
  cuda::let_next_begin();
  extern __shared__ __align__(1024) char shared[];
  sum_tall_stages<Shape>(launch, shared);
#else
  __trap();
#endif
}

template <class Shape>
constexpr ByteWindowsFunction tall_bytes_function() {
  return windows_function<Shape, sum_tall_bytes<Shape>>();
}

}  // namespace tessera::ops
