// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/epilogue.cuh"
#include "ops/spmm/cuda/short/launch.hpp"

/// Sums over windows of 8 rows with `mma.m16n8k16`, which every GPU from Ampere on has.
///
/// The product is turned round, Y^T = X^T A^T: features are the long side of the instruction and
/// the window's rows the short one, so that no more than 8 rows have to share columns. Of the 16
/// columns of a step lane l needs four: 2 * (l % 4), the next, and both 8 further on. It loads 16
/// bytes of their rows of X, the features from 8 * (l / 4) on, straight into registers. The order
/// of features within the instruction is free; so two byte permutes of two rows make two registers
/// of the operand. A lane's sums are the same features of the window's rows 2 * (l % 4) and the
/// next. There is no shared memory.
///
/// Warps stay and go through a list of pieces, step by step, be they of one window or another.
/// While rows of X are under way, so are the columns and bits of the next step.
namespace tessera::ops {

inline constexpr int short_warps = 4;
inline constexpr int short_threads = 32 * short_warps;

/// What a lane knows of a step: its four columns, and the word that has its bits.
struct ShortStep {
  VertexId columns[4] = {};
  std::uint32_t word = 0;

  /// Step and tile count in the whole graph. Of a step that does not exist: column 0, which nobody
  /// uses.
  __device__ static ShortStep load(const ShortLaunch& launch, bool exists, int step, int tile) {
    ShortStep loaded;
    if (!exists) return loaded;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const VertexId* const columns = launch.matrix.columns + std::int64_t{step} * 16 + lane % 4 * 2;
    const int2 lower = *reinterpret_cast<const int2*>(columns);
    const int2 upper = *reinterpret_cast<const int2*>(columns + 8);
    loaded.columns[0] = lower.x;
    loaded.columns[1] = lower.y;
    loaded.columns[2] = upper.x;
    loaded.columns[3] = upper.y;
    loaded.word = launch.matrix.words[std::int64_t{tile} * 16 + lane / 2];
    return loaded;
  }

  /// 1 where there is an edge: tiles/fragment.hpp says which bits they are.
  template <class T>
  __device__ void expand(int step, std::uint32_t (&pattern)[2]) const {
    constexpr std::uint32_t one = std::is_same_v<T, __nv_bfloat16> ? 0x3f80u : 0x3c00u;
    // The bits of the even columns to the low half, those of the odd ones to the high half.
    const std::uint32_t halves = __byte_perm(word, 0, threadIdx.x % 2 == 0 ? 0x4140 : 0x4342);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      pattern[i] = (halves >> (2 * (step % 4) + i) & 0x00010001u) * one;
    }
  }
};

/// A lane's share of `width` features of a window. Rows go through an epilogue if there is one.
template <class T, int width, bool epilogue>
class ShortSums {
 public:
  /// Words of a load, each with two features: 16 bytes, or 8 where all features are few.
  static constexpr int words = width < 64 ? 2 : 4;
  static constexpr int parts = width / (16 * words);
  static_assert(parts <= 2);
  using Raw = std::conditional_t<words == 4, uint4, uint2>;

  __device__ explicit ShortSums(const ShortLaunch& launch) : launch_(launch) {
    // Lanes without features multiply others, which nobody stores.
    const int features = launch.features.count;
    x_ = static_cast<const T*>(launch.features.x) +
         (first_feature(0) < features ? first_feature(0) : 0);
    other_part_ = first_feature(parts - 1) < features ? (parts - 1) * part_width : 0;
    clear();
  }

  /// Asks for the rows of X.
  __device__ void gather(const ShortStep& step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t offset =
          std::uint64_t{static_cast<std::uint32_t>(step.columns[i])} * launch_.features.x_row_bytes;
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const char* const row =
            reinterpret_cast<const char*>(x_ + (part > 0 ? other_part_ : 0)) + offset;
        const Raw raw = *reinterpret_cast<const Raw*>(row);
        memcpy(rows_[part][i], &raw, sizeof(raw));
      }
    }
  }

  __device__ void multiply(const std::uint32_t (&pattern)[2]) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int i = 0; i < words; ++i) {
        const std::uint32_t(&rows)[4][words] = rows_[part];
        const std::uint32_t features[4] = {__byte_perm(rows[0][i], rows[1][i], 0x5410),
                                           __byte_perm(rows[0][i], rows[1][i], 0x7632),
                                           __byte_perm(rows[2][i], rows[3][i], 0x5410),
                                           __byte_perm(rows[2][i], rows[3][i], 0x7632)};
        cuda::multiply_16x8<T>(sums_[part * words + i], features, pattern);
      }
    }
  }

  __device__ void clear() {
#pragma unroll
    for (auto& tile : sums_) {
#pragma unroll
      for (float& sum : tile) sum = 0;
    }
  }

  /// Multiplies the rows by their scales and brings them to Y.
  __device__ void store(VertexId first_row) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const VertexId row = first_row + lane() % 4 * 2 + odd;
      if (row >= launch_.matrix.num_rows) continue;
      if (launch_.epilogue.row_scale != nullptr) {
        const float scale = __ldg(launch_.epilogue.row_scale + row);
#pragma unroll
        for (auto& tile : sums_) {
          tile[odd] *= scale;
          tile[2 + odd] *= scale;
        }
      }
      to_y(odd, row);
    }
  }

  /// Leaves the sums of a piece in its slot.
  __device__ void to_slot(int slot) const {
    float4* const own = place(slot);
#pragma unroll
    for (int i = 0; i < num_tiles; ++i) {
      own[i * 32] = make_float4(sums_[i][0], sums_[i][1], sums_[i][2], sums_[i][3]);
    }
  }

  __device__ void add_slot(int slot) {
    const float4* const piece = place(slot);
#pragma unroll
    for (int i = 0; i < num_tiles; ++i) {
      const float4 part = __ldcg(piece + i * 32);
      sums_[i][0] += part.x;
      sums_[i][1] += part.y;
      sums_[i][2] += part.z;
      sums_[i][3] += part.w;
    }
  }

 private:
  static constexpr int part_width = 16 * words;
  static constexpr int num_tiles = parts * words;  ///< of 16 features

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ static int first_feature(int part) {
    return static_cast<int>(blockIdx.y) * width + part * part_width + lane() / 4 * 2 * words;
  }

  __device__ float4* place(int slot) const {
    const std::int64_t first_of_chunk = std::int64_t{blockIdx.y} * launch_.work.num_slots;
    return reinterpret_cast<float4*>(launch_.work.slots) +
           (first_of_chunk + slot) * num_tiles * 32 + lane();
  }

  /// Y is the first that the cache may forget: rows of X are needed again, those of Y not.
  __device__ void to_y(int odd, VertexId row) const {
    [[maybe_unused]] T* const y =
        static_cast<T*>(launch_.features.y) + row * launch_.features.y_stride;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int feature = first_feature(part);
      if (feature >= launch_.features.count) continue;
      if constexpr (epilogue) {
        float sums[2 * words];
#pragma unroll
        for (int i = 0; i < 2 * words; ++i) sums[i] = sums_[part * words + i / 2][i % 2 * 2 + odd];
        store_with_epilogue<T>(launch_.epilogue, launch_.features.y, launch_.features.y_stride,
                               {row, feature, launch_.features.count}, sums);
      } else {
        T values[2 * words];
#pragma unroll
        for (int i = 0; i < 2 * words; ++i) {
          values[i] = cuda::narrow<T>(sums_[part * words + i / 2][i % 2 * 2 + odd]);
        }
        Raw raw;
        memcpy(&raw, values, sizeof(raw));
        __stcs(reinterpret_cast<Raw*>(y + feature), raw);
      }
    }
  }

  const ShortLaunch& launch_;
  const T* x_;
  int other_part_;  ///< from the first
  std::uint32_t rows_[parts][4][words];
  /// Tile i has the features 2 * i and 2 * i + 1 of the lane, for two rows each.
  float sums_[num_tiles][4];
};

template <class T, int width, bool epilogue>
__global__ __launch_bounds__(short_threads,
                             width == 128 ? 5
                                          : 7) void sum_short_windows(const ShortLaunch launch) {
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
  ShortStep step = ShortStep::load(launch, piece.num_steps > 0, piece.first_step, piece.first_tile);
  ShortSums<T, width, epilogue> sums(launch);
  cuda::wait_for_previous();
  for (int i = 0; at < end;) {
    const bool ends = i + 1 >= piece.num_steps;
    sums.gather(step);
    const ShortStep next_step =
        ShortStep::load(launch, !ends || next_piece.num_steps > 0,
                        ends ? next_piece.first_step : piece.first_step + i + 1,
                        ends ? next_piece.first_tile : piece.first_tile + (i + 1) / 4);
    // Asked for no earlier than needed, to spare registers.
    const int slot = ends ? launch.work.pieces[at].slot : -1;
    // Keeps all loads of a step together: the compiler would put some behind the first products. It
    // still does with loads of data that never changes (`__ldg`).
    __syncwarp();
    std::uint32_t pattern[2];
    step.expand<T>(i, pattern);
    sums.multiply(pattern);
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
template <class T, int width, bool epilogue>
__global__ __launch_bounds__(short_threads) void add_short_pieces(const ShortLaunch launch) {
  cuda::begin_overlapped();
  const int i = static_cast<int>(blockIdx.x) * short_warps + static_cast<int>(threadIdx.x) / 32;
  if (i >= launch.work.num_cut_windows) return;
  const tiles::CutWindow window = launch.work.cut_windows[i];
  ShortSums<T, width, epilogue> sums(launch);
#pragma unroll 2
  for (int k = 0; k < window.num_slots; ++k) sums.add_slot(window.first_slot + k);
  sums.store(window.first_row);
}

template <class T, int width, bool epilogue>
void launch_short(const ShortLaunch& launch, Stream stream) {
  const unsigned chunks = cuda::num_blocks(launch.features.count, width);
  const dim3 workers(cuda::num_blocks(launch.work.num_workers, short_warps), chunks);
  cuda::launch_overlapped(sum_short_windows<T, width, epilogue>, workers, short_threads, stream,
                          launch);
  const dim3 cut_windows(cuda::num_blocks(launch.work.num_cut_windows, short_warps), chunks);
  cuda::launch_overlapped(add_short_pieces<T, width, epilogue>, cut_windows, short_threads, stream,
                          launch);
}

/// Warps that the current GPU holds at once.
template <class T, int width, bool epilogue>
int resident_short_warps() {
  return cuda::resident_blocks(sum_short_windows<T, width, epilogue>, short_threads, 0) *
         short_warps;
}

template <class T, int width, bool epilogue>
constexpr ShortFunction short_function = {width, launch_short<T, width, epilogue>,
                                          resident_short_warps<T, width, epilogue>};

template <ShortKey key>
std::span<const ShortFunction> ShortKernels<key>::all() {
  using T = cuda::Stored<key.precision>;
  static constexpr std::array<ShortFunction, short_widths.size()> functions = {
      short_function<T, 32, key.epilogue>, short_function<T, 64, key.epilogue>,
      short_function<T, 128, key.epilogue>};
  return functions;
}

}  // namespace tessera::ops
