// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/cuda/turned_rows.cuh"

/// Windows of 64 rows: the pattern, expanded to bytes in registers, times lines of codes, in
/// products of bytes that every warp asks for by itself. Turn k
///
///     turns stage k into lines, asks for the rows of stage k + 2, reads which ones stage k + 3
///     has, and multiplies stage k - 1.
namespace tessera::ops {

/// Products of a stage.
template <class Shape>
class LineProducts {
 public:
  /// A lane gives the address of 16 sources of one column: lanes 0-7 those of even columns, lanes
  /// 8-15 the next sources of the same, the others odd ones.
  __device__ explicit LineProducts(std::uint32_t lines) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const auto warp = static_cast<int>(threadIdx.x / 32);
    const int first_line = warp % Shape::column_warps * Shape::groups * 16;
    from_ =
        lines + cuda::RowLayout<128>::offset(first_line + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    // Not formed again in every turn.
    asm volatile("" : "+r"(from_));
  }

  __device__ void add(int place, const StageBits<Shape>& bits,
                      typename ByteWindowSums<Shape>::Own& sums) const {
    const std::uint32_t lines = from_ + static_cast<std::uint32_t>(place * Shape::line_bytes);
#pragma unroll
    for (int step = 0; step < Shape::rows / 32; ++step) {
      std::uint32_t pattern[Shape::strips][4];
#pragma unroll
      for (int strip = 0; strip < Shape::strips; ++strip) {
        expand_bytes(bits.of[step / 2][strip], step % 2, pattern[strip]);
      }
#pragma unroll
      for (int group = 0; group < Shape::groups; ++group) {
        std::uint32_t blocks[4];
        // Further sources differ from the first in the same bits whatever the line.
        cuda::load_blocks(blocks, (lines ^ static_cast<std::uint32_t>(step * 32)) +
                                      static_cast<std::uint32_t>(group * 16 * 128));
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const std::uint32_t codes[2] = {blocks[odd * 2], blocks[odd * 2 + 1]};
#pragma unroll
          for (int strip = 0; strip < Shape::strips; ++strip) {
            multiply_16x8(sums[strip][group][odd], pattern[strip], codes);
          }
        }
      }
    }
  }

 private:
  std::uint32_t from_;
};

template <class Shape>
__device__ void sum_turned_stages(const ByteWindowsLaunch& launch, char* memory) {
  const std::uint32_t lines = cuda::shared_address(memory);
  const std::uint32_t rows = lines + Shape::rows_at;
  const StageRing<Shape> ring(launch.tall.work, memory + Shape::stages_at);
  ring.start();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  const RowTurner<Shape> turner(rows, lines);
  const LineProducts<Shape> products(lines);
  RowAsker<Shape> asker(launch.tall, rows);
  asker.read(ring.stage(0));
  const BitReader<Shape> reader(launch.tall.matrix.words);
  StageBits<Shape> bits;
  StageBits<Shape> next_bits = reader.read(ring.stage(0));
  expect_result(launch.out);
  cuda::wait_for_previous();
  for (int turn = 0; turn < 2; ++turn) {
    asker.ask(turn);
    cuda::commit_copies();
    asker.read(ring.stage(turn + 1));
  }

  ByteWindowSums<Shape> sums(launch);
  tiles::Stage before = {.end = tiles::StageEnd::none};
  for (int turn = 0, place = 0;; ++turn, place ^= 1) {
    // All but the latest group: the rows of this stage.
    cuda::wait_for_copies<1>();
    __syncthreads();
    turner.turn(place);
    __syncwarp();
    // To where the rows of this stage were, which nobody but this warp has read.
    asker.ask(place);
    ring.advance(turn);
    cuda::commit_copies();
    asker.read(ring.stage(turn + 3));
    products.add(place ^ 1, bits, sums.own);
    bits = next_bits;
    next_bits = reader.read(ring.stage(turn + 1));
    if (before.end != tiles::StageEnd::none) sums.finish(before);
    before = ring.stage(turn);
    if (before.end == tiles::StageEnd::work) break;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::min_blocks) void sum_turned_windows(
    const ByteWindowsLaunch launch) {
  cuda::let_next_begin();
  extern __shared__ __align__(1024) char shared[];
  sum_turned_stages<Shape>(launch, shared);
}

template <class Shape>
constexpr ByteWindowsFunction turned_windows_function() {
  return windows_function<Shape, sum_turned_windows<Shape>>();
}

}  // namespace tessera::ops
