// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/precision.cuh"
#include "ops/spmm/cuda/short/bits.cuh"
#include "ops/spmm/cuda/short/launch.hpp"
#include "ops/spmm/cuda/short/quads.cuh"

/// Sums over short windows, whatever encodes their edges (bits.cuh, quads.cuh). Warps stay and go
/// through a list of pieces, step by step, be they of one window or another. While rows of X are
/// under way, so are the columns and edges of the next step.
///
/// An encoding is a class with
///   Step             what a lane knows of a step: `load`
///   Sums             what it adds up of a window: `gather` asks for the rows of X of a step,
///                    `multiply` takes them, `store` brings rows to Y
///   steps_per_tile   of its words
///   blocks           that a processor should hold, by the bytes of the features of a row
namespace tessera::ops {

inline constexpr int short_warps = 4;
inline constexpr int short_threads = 32 * short_warps;

template <class Windows, class T, int width, bool epilogue>
__global__ __launch_bounds__(
    short_threads,
    Windows::blocks(width * sizeof(T))) void sum_short_windows(const ShortLaunch launch) {
  using Step = typename Windows::Step;
  cuda::let_next_begin();
  const int worker =
      static_cast<int>(blockIdx.x) * short_warps + static_cast<int>(threadIdx.x) / 32;
  if (worker >= launch.work.num_workers) return;
  int at = launch.work.worker_offsets[worker];
  const int end = launch.work.worker_offsets[worker + 1];
  // One that does not exist has no steps.
  const auto load_piece = [&](int i) {
    tiles::Piece loaded;
    if (i < end) loaded = launch.work.pieces[i];
    return loaded;
  };
  tiles::Piece piece = load_piece(at);
  tiles::Piece next_piece = load_piece(at + 1);
  Step step = Step::load(launch, piece.num_steps > 0, piece.first_step, piece.first_tile);
  typename Windows::template Sums<T, width, epilogue> sums(launch);
  cuda::wait_for_previous();
  for (int i = 0; at < end;) {
    const bool ends = i + 1 >= piece.num_steps;
    sums.gather(step);
    const Step next_step = Step::load(
        launch, !ends || next_piece.num_steps > 0,
        ends ? next_piece.first_step : piece.first_step + i + 1,
        ends ? next_piece.first_tile : piece.first_tile + (i + 1) / Windows::steps_per_tile);
    // Asked for no earlier than needed, to spare registers.
    const int slot = ends ? launch.work.pieces[at].slot : -1;
    // Keeps all loads of a step together: the compiler would put some behind the first products. It
    // still does with loads of data that never changes (`__ldg`).
    __syncwarp();
    sums.multiply(step, i);
    step = next_step;
    ++i;
    if (ends) {
      const tiles::Piece finished = piece;
      piece = next_piece;
      ++at;
      next_piece = load_piece(at + 1);
      // Column 0, multiplied by 0, may not have been finite.
      if (finished.num_steps == 0) sums.clear();
      if (slot < 0) {
        sums.store(finished.first_row);
      } else {
        sums.to_slot(slot);
      }
      sums.clear();
      i = 0;
    }
  }
}

/// A warp for each window of several pieces adds up their sums, in order: a launch of its own
/// because the first has no registers to spare.
template <class Windows, class T, int width, bool epilogue>
__global__ __launch_bounds__(short_threads) void add_short_pieces(const ShortLaunch launch) {
  cuda::begin_overlapped();
  const int i = static_cast<int>(blockIdx.x) * short_warps + static_cast<int>(threadIdx.x) / 32;
  if (i >= launch.work.num_cut_windows) return;
  const tiles::CutWindow window = launch.work.cut_windows[i];
  typename Windows::template Sums<T, width, epilogue> sums(launch);
#pragma unroll 2
  for (int k = 0; k < window.num_slots; ++k) sums.add_slot(window.first_slot + k);
  sums.store(window.first_row);
}

template <class Windows, class T, int width, bool epilogue>
void launch_short(const ShortLaunch& launch, Stream stream) {
  const unsigned chunks = cuda::num_blocks(launch.features.count, width);
  const dim3 workers(cuda::num_blocks(launch.work.num_workers, short_warps), chunks);
  cuda::launch_overlapped(sum_short_windows<Windows, T, width, epilogue>, workers, short_threads,
                          stream, launch);
  const dim3 cut_windows(cuda::num_blocks(launch.work.num_cut_windows, short_warps), chunks);
  cuda::launch_overlapped(add_short_pieces<Windows, T, width, epilogue>, cut_windows, short_threads,
                          stream, launch);
}

/// Warps that the current GPU holds at once.
template <class Windows, class T, int width, bool epilogue>
int resident_short_warps() {
  return cuda::resident_blocks(sum_short_windows<Windows, T, width, epilogue>, short_threads, 0) *
         short_warps;
}

/// One kernel for each width.
template <class Windows, ShortKey key, int... widths>
std::span<const ShortFunction> short_functions() {
  using T = cuda::Stored<key.precision>;
  static constexpr std::array<ShortFunction, sizeof...(widths)> functions = {
      ShortFunction{widths, launch_short<Windows, T, widths, key.epilogue>,
                    resident_short_warps<Windows, T, widths, key.epilogue>}...};
  return functions;
}

template <ShortKey key>
std::span<const ShortFunction> ShortKernels<key>::get() {
  if constexpr (key.encoding == ShortEncoding::bits) {
    return short_functions<BitWindows, key, 32, 64, 128>();
  } else if constexpr (key.encoding == ShortEncoding::quads && key.precision == Precision::fp32) {
    return short_functions<QuadWindows<key.whole_rows>, key, 64>();
  } else if constexpr (key.encoding == ShortEncoding::quads) {
    return short_functions<QuadWindows<key.whole_rows>, key, 64, 128>();
  } else {
    return short_functions<ValuedQuadWindows<key.whole_rows>, key, 64, 128>();
  }
}

}  // namespace tessera::ops
