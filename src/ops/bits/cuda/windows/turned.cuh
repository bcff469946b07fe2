// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/windows/kernel.cuh"

/// Windows of 64 rows on Hopper's matrix units: the pattern is expanded to bytes in registers and
/// multiplied by lines of codes. Turn k
///
///     multiplies stage k - 1, turns stage k into lines, reads the bits of stage k + 1, asks for
///     the rows of stage k + 2, and reads which ones stage k + 3 has.
///
/// Codes of a window's columns, gathered as they are and turned into lines: one for each column of
/// codes, with the sources of a stage side by side, which is the order in which matrix units read
/// bytes. The warp that asked for 32 rows turns them once for all rows of the window.
///
/// In a line the sources of a step stand as its words (tiles/fragment.hpp) expand: place 4 q + j is
/// source 2 q + {0, 8, 1, 9}[j].
namespace tessera::ops {

/// Warps lie below one another, so many blocks share a processor.
template <int width, int min_blocks>
struct TurnedShape : ByteWindowsShape<width, 4, min_blocks> {
  using Base = ByteWindowsShape<width, 4, min_blocks>;
  static constexpr int line_bytes = 128 * width;
  static constexpr int rows_at = 2 * line_bytes;
  static constexpr int stages_at = rows_at + 2 * Base::stage_bytes;
  using Ring = StageRing<Base::threads>;
  static constexpr int shared_bytes = stages_at + Ring::bytes;
  static constexpr int tiles = Base::rows / 64;
  static_assert(Base::rows == 128, "a line has 128 bytes");
};

/// This thread's bits of a stage. Steps that a window does not have are without edges.
template <class Shape>
struct StageBits {
  std::uint32_t of_tile[Shape::tiles] = {};
};

template <class Shape>
class BitReader {
 public:
  __device__ explicit BitReader(const std::uint32_t* words)
      : words_(reinterpret_cast<const char*>(words + threadIdx.x)) {
    // One register pair, not a sum that is formed again in every turn.
    asm volatile("" : "+l"(words_));
  }

  __device__ StageBits<Shape> read(const tiles::Stage& stage) const {
    StageBits<Shape> bits;
    const auto* const words = reinterpret_cast<const std::uint32_t*>(
        words_ + std::int64_t{stage.first_tile} * (Shape::threads * 4));
#pragma unroll
    for (int tile = 0; tile < Shape::tiles; ++tile) {
      if (tile * 4 < stage.num_steps) bits.of_tile[tile] = __ldg(words + tile * Shape::threads);
    }
    return bits;
  }

 private:
  const char* words_;
};

/// Brings this thread's part of a stage's rows.
template <class Shape>
class RowAsker {
 public:
  __device__ RowAsker(const TallLaunch& launch, std::uint32_t rows)
      : share_(launch),
        columns_(reinterpret_cast<const char*>(launch.matrix.columns)),
        to_(rows + Shape::offset(share_.first_row, share_.unit)) {
    // Not formed again in every turn.
    asm volatile("" : "+l"(columns_), "+r"(to_));
  }

  /// Which rows of X they are.
  __device__ void read(const tiles::Stage& stage) {
    live_ = share_.live(stage.num_steps);
    if (!live_) return;
    const uint2 both = __ldg(reinterpret_cast<const uint2*>(
        columns_ + std::int64_t{stage.first_step} * (16 * 4) + share_.first_row * 4));
    memcpy(ids_, &both, sizeof(both));
  }
  __device__ void ask(int place) const {
    if (!live_) return;
    const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * Shape::stage_bytes);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      cuda::copy_16_async(Shape::further(to, i), share_.of(ids_[i]));
    }
  }

 private:
  static constexpr int count = Shape::Share::count;
  static_assert(count == 2);

  typename Shape::Share share_;
  const char* columns_;
  std::uint32_t to_;
  VertexId ids_[count] = {};
  bool live_ = false;
};

/// Turns the 32 rows of a stage that this warp asked for.
template <class Shape>
class RowTurner {
 public:
  __device__ RowTurner(std::uint32_t rows, std::uint32_t lines) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const auto warp = static_cast<int>(threadIdx.x / 32);
    from_ = rows + Shape::offset(warp * 32 + lane, 0);
    // Even columns of 16 before odd ones.
    to_ = lines + cuda::RowLayout<128>::offset(lane % 16, warp * 2 + lane / 16);
    // Not formed again in every turn.
    asm volatile("" : "+r"(from_), "+r"(to_));
  }

  __device__ void turn(int place) const {
    const std::uint32_t from = from_ + static_cast<std::uint32_t>(place * Shape::stage_bytes);
    const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * Shape::line_bytes);
#pragma unroll
    for (int group = 0; group < Shape::groups; ++group) {
      std::uint32_t blocks[4];
      // Further groups differ from the first in the same bits whatever the row.
      cuda::load_blocks_transposed(blocks, from ^ static_cast<std::uint32_t>(group * 16));
      const std::uint32_t turned[4] = {
          __byte_perm(blocks[0], blocks[1], 0x6240), __byte_perm(blocks[0], blocks[1], 0x7351),
          __byte_perm(blocks[2], blocks[3], 0x6240), __byte_perm(blocks[2], blocks[3], 0x7351)};
      cuda::store_blocks(to + static_cast<std::uint32_t>(group * 16 * 128), turned);
    }
  }

 private:
  std::uint32_t from_;
  std::uint32_t to_;
};

/// The edges of a stage as bytes, and their products, which are in flight when `start` returns.
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
  const typename Shape::Ring ring(launch.tall, memory + Shape::stages_at);
  ring.start();
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
    // It may wait for all copies in flight, so everything is read and asked for behind it.
    cuda::fence_shared_for_wgmma();
    __syncwarp();
    // To where the rows of this stage were, which only this warp has read.
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

}  // namespace tessera::ops
