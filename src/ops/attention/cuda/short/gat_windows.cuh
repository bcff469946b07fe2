// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/piece_feed.cuh"
#include "ops/cuda/exponentials.cuh"
#include "ops/windows/edge_weights.cuh"

/// What the passes of GAT over windows of 16 rows share: a warp takes a window by itself, 16
/// columns at a time. Rows come to shared memory, 16 bytes of four columns for each lane. What
/// else a column brings one lane finds for all, and lanes exchange it.
namespace tessera::ops {

/// Rows of a matrix whose first address stays in registers.
struct GatRows : FeatureRows {
  __device__ GatRows(const void* matrix, std::int64_t stride, int width, int first)
      : FeatureRows(matrix, stride, width, first) {
    hold();
  }
};

/// 16 bytes through the L1 cache, as other windows may need them, too.
__device__ inline void copy_16_async_cached(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

/// Steps whose rows are there or on their way.
inline constexpr int gat_stages = 3;

/// The rows of steps, to be weighted: 16 bytes of columns 2q, 2q + 1, 2q + 8 and 2q + 9 for each
/// lane, which copies them for itself.
template <int width>
class GatStepRows {
  static constexpr int chunks = width / 64;
  static constexpr int stage_bytes = 16 * width * 2;

 public:
  static constexpr int bytes = gat_stages * stage_bytes;

  __device__ GatStepRows(const GatRows& matrix, char* memory)
      : matrix_(matrix), memory_(memory + WarpLane::number() * 16) {}

  /// Asks for the rows of these columns, which lie in shared memory.
  __device__ void start(int stage, const VertexId* columns) const {
    const int2* const pairs = reinterpret_cast<const int2*>(columns) + WarpLane::quarter();
    const int2 low = pairs[0];
    const int2 high = pairs[4];
    const VertexId weighted[4] = {low.x, low.y, high.x, high.y};
    const std::uint32_t to = cuda::shared_address(memory_ + stage * stage_bytes);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const char* const from = matrix_.at(weighted[i]);
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        copy_16_async_cached(to + (chunk * 4 + i) * 512, from + chunk * 128);
      }
    }
  }
  /// When the copies of this lane have come.
  template <class T>
  __device__ void add_to(FeatureSums<T, width>& sums, const StepOperands<T>& weights,
                         int stage) const {
    const uint4* const units = reinterpret_cast<const uint4*>(memory_ + stage * stage_bytes);
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const uint4 rows[4] = {units[(chunk * 4 + 0) * 32], units[(chunk * 4 + 1) * 32],
                             units[(chunk * 4 + 2) * 32], units[(chunk * 4 + 3) * 32]};
      sums.add(weights, chunk, rows);
    }
  }

 private:
  const GatRows& matrix_;
  char* memory_;
};

/// Which of the columns of a step the i-th of this lane's cells of a row belongs to.
__device__ inline int column_of_cell(int i) { return 2 * WarpLane::quarter() + i % 2 + i / 2 * 8; }

/// The rows of one step of which nobody asked for ahead.
template <class T, int width>
__device__ void add_rows_now(FeatureSums<T, width>& sums, const StepOperands<T>& weights,
                             const GatRows& matrix, const VertexId* columns) {
#pragma unroll
  for (int chunk = 0; chunk < width / 64; ++chunk) {
    uint4 rows[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const char* const row = matrix.at(columns[column_of_cell(i)]);
      rows[i] = __ldg(reinterpret_cast<const uint4*>(row + chunk * 128));
    }
    sums.add(weights, chunk, rows);
  }
}

/// The term of a vertex and the head blockIdx.y, as it lies in memory.
template <class T>
__device__ T gat_term(const void* terms, std::int64_t stride, VertexId vertex) {
  return __ldg(static_cast<const T*>(terms) + std::int64_t{vertex} * stride + blockIdx.y);
}

/// The column of a step that a lane brings something of.
__device__ inline int brought_column() { return WarpLane::number() % 16; }

/// Of this lane. The next piece copies to the same places, and of two copies to one place any may
/// come last.
__device__ inline void wait_for_all_copies() {
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
}

/// Goes over pieces [begin, end). A pass has
///   load_own(piece)      asks for what belongs to the rows of the next piece
///   begin_piece(piece)   takes it
///   bring(column)        asks for what belongs to a column of the next step
///   share()              leaves what came of it for other lanes, which see it in that step
///   add(bits, weigh)     one step; weigh(sums, weights) adds its rows
///   fits()               whether the piece may be finished as it was computed
///   finish(piece, by_factors)   waits for all that was asked for when the piece began
/// Rows are asked for two steps ahead, what else columns bring one step. Returns the first piece
/// that does not fit.
template <int width>
class GatWindows {
  using Feed = PieceFeed<gat_stages - 1>;
  using Rows = GatStepRows<width>;
  static_assert(gat_stages == 3);

 public:
  static constexpr int bytes = Feed::bytes + Rows::bytes;

  template <class Pass>
  __device__ static std::int32_t walk(Pass& pass, const WindowsLaunch& launch,
                                      const GatRows& gathered, std::int32_t begin, std::int32_t end,
                                      char* memory) {
    if (begin == end) return end;
    Feed feed(launch, begin, end, memory + Rows::bytes);
    const Rows rows(gathered, memory);
    pass.load_own(feed.piece(0));
    // Of the step at hand and of the two behind it.
    std::uint32_t bits = 0, next_bits = 0;
    VertexId next_column = 0;
    bool has_next = false;
    const bool has_steps = feed.advance();
    if (has_steps) {
      bits = feed.bits();
      pass.bring(feed.columns()[brought_column()]);
      rows.start(0, feed.columns());
    }
    cuda::commit_copies();
    __syncwarp();
    if (feed.advance()) {
      has_next = true;
      next_bits = feed.bits();
      next_column = feed.columns()[brought_column()];
      rows.start(1, feed.columns());
    }
    cuda::commit_copies();
    if (has_steps) pass.share();
    int stage = 0;
    std::int32_t first_left = end;
    for (int i = 0; i < feed.count(); ++i) {
      feed.pass(i);
      pass.begin_piece(feed.piece(i));
      if (i + 1 < feed.count()) pass.load_own(feed.piece(i + 1));
      for (int left = feed.piece(i).num_steps; left > 0; --left) {
        const bool brings = has_next;
        if (brings) pass.bring(next_column);
        cuda::wait_for_copies<1>();
        __syncwarp();
        const std::uint32_t bits_here = bits;
        const int stage_here = stage;
        bits = next_bits;
        stage = stage == gat_stages - 1 ? 0 : stage + 1;
        has_next = feed.advance();
        if (has_next) {
          next_bits = feed.bits();
          next_column = feed.columns()[brought_column()];
          rows.start(stage_here == 0 ? gat_stages - 1 : stage_here - 1, feed.columns());
        }
        cuda::commit_copies();
        pass.add(bits_here,
                 [&](auto& sums, const auto& weights) { rows.add_to(sums, weights, stage_here); });
        if (brings) pass.share();
      }
      if (pass.fits()) {
        pass.finish(feed.piece(i), true);
      } else {
        first_left = min(first_left, begin + i);
        wait_for_all_copies();
      }
    }
    return first_left;
  }
};

}  // namespace tessera::ops
