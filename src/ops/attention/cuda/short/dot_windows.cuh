// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/piece_feed.cuh"
#include "ops/attention/cuda/short/step_tile.cuh"

/// What the passes of dot products over windows of 16 rows share: a warp takes a window by itself,
/// 16 columns at a time. Rows of sources and values come to shared memory a step ahead, from one
/// window to the next without a seam; matrix instructions take them from there, whether they meet
/// the rows of the window or are weighted.
namespace tessera::ops {

/// The 16 rows of a window as operands of products with gathered rows.
template <int width>
struct HeldRows {
  static constexpr int steps = width / 16;

  std::uint32_t of[steps][4];  ///< 16 features each

  __device__ void load(const StepTile<width>& tile) {
#pragma unroll
    for (int i = 0; i < steps; ++i) tile.load_first(of[i], 2 * i);
  }

  /// Adds their products with the rows of a step.
  template <class T>
  __device__ void multiply(const StepTile<width>& met, StepCells& cells) const {
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      std::uint32_t blocks[4];
      met.load_second(blocks, 2 * i);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
        cuda::multiply_16x8<T>(cells.of[half], of[i], b);
      }
    }
  }
};

/// Goes over pieces [begin, end). A pass has
///   start_own(piece)            asks for what belongs to the rows of a piece
///   clear()                     before a piece
///   begin(piece)                takes what was asked for
///   start_step(stage, columns)  asks for what belongs to the columns of a step, but for rows
///   add(stage, bits, sources, values)   one step, of which all has come
///   finish(piece)
template <int width>
class DotWindows {
  using Feed = PieceFeed<1>;

 public:
  using Tile = StepTile<width>;
  /// Steps whose rows are there or on their way: a third would leave room for fewer warps.
  static constexpr int stages = 2;

 private:
  static constexpr int stage_bytes = 2 * Tile::bytes;

 public:
  static constexpr int bytes = stages * stage_bytes + Feed::bytes;

  template <class Pass>
  __device__ static void walk(Pass& pass, const WindowsLaunch& launch, std::int32_t begin,
                              std::int32_t end, char* memory) {
    if (begin == end) return;
    FeatureRows sources(launch.source, launch.source_stride, width, Tile::unit_of_lane() * 8);
    FeatureRows values(launch.value, launch.value_stride, width, Tile::unit_of_lane() * 8);
    sources.hold();
    values.hold();
    Feed feed(launch, begin, end, memory + stages * stage_bytes);
    const auto source_tile = [&](int stage) { return Tile(memory + stage * stage_bytes); };
    const auto value_tile = [&](int stage) {
      return Tile(memory + stage * stage_bytes + Tile::bytes);
    };
    // Asks for the next step, if there is one; returns this lane's bits of it.
    const auto start_step = [&](int stage) {
      std::uint32_t bits = 0;
      if (feed.advance()) {
        bits = feed.bits();
        const typename Tile::Share share(feed.columns());
        source_tile(stage).start(sources, share);
        value_tile(stage).start(values, share);
        pass.start_step(stage, feed.columns());
      }
      cuda::commit_copies();
      return bits;
    };
    pass.start_own(feed.piece(0));
    int stage = 0;
    std::uint32_t bits = start_step(stage);
    for (int i = 0; i < feed.count(); ++i) {
      feed.pass(i);
      const int num_steps = feed.piece(i).num_steps;
      pass.clear();
      for (int left = num_steps; left > 0; --left) {
        cuda::wait_for_copies<0>();
        __syncwarp();
        if (left == num_steps) {
          pass.begin(feed.piece(i));
          __syncwarp();
          if (i + 1 < feed.count()) pass.start_own(feed.piece(i + 1));
        }
        const std::uint32_t bits_here = bits;
        bits = start_step(stage ^ 1);
        pass.add(stage, bits_here, source_tile(stage), value_tile(stage));
        stage ^= 1;
      }
      pass.finish(feed.piece(i));
    }
  }
};

}  // namespace tessera::ops
