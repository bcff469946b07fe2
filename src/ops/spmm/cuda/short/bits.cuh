// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/mma.cuh"
#include "ops/spmm/cuda/short/window_sums.cuh"

/// Sums over windows of 8 rows with `mma.m16n8k16`, which every GPU from Ampere on has.
///
/// The product is turned round, Y^T = X^T A^T: features are the long side of the instruction and
/// the window's rows the short one, so that no more than 8 rows have to share columns. Of the 16
/// columns of a step lane l needs four: 2 * (l % 4), the next, and both 8 further on. It loads 16
/// bytes of their rows of X, the features from 8 * (l / 4) on, straight into registers. The order
/// of features within the instruction is free; so two byte permutes of two rows make two registers
/// of the operand. A lane's sums are the same features of the window's rows 2 * (l % 4) and the
/// next. There is no shared memory.
namespace tessera::ops {

/// What a lane knows of a step: its four columns, and the word that has its bits.
struct BitStep {
  VertexId columns[4] = {};
  std::uint32_t word = 0;

  /// Step and tile count in the whole graph. Of a step that does not exist: column 0, which nobody
  /// uses.
  __device__ static BitStep load(const ShortLaunch& launch, bool exists, int step, int tile) {
    BitStep loaded;
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
class BitSums : public WindowSums<width / 16> {
  using Base = WindowSums<width / 16>;

 public:
  /// Words of a load, each with two features: 16 bytes, or 8 where all features are few.
  static constexpr int words = width < 64 ? 2 : 4;
  static constexpr int parts = width / (16 * words);
  static_assert(parts <= 2);
  using Raw = std::conditional_t<words == 4, uint4, uint2>;

  __device__ explicit BitSums(const ShortLaunch& launch) : Base(launch) {
    // Lanes without features multiply others, which nobody stores.
    const int features = launch.features.count;
    x_ = static_cast<const T*>(launch.features.x) +
         (first_feature(0) < features ? first_feature(0) : 0);
    other_part_ = first_feature(parts - 1) < features ? (parts - 1) * part_width : 0;
  }

  /// Asks for the rows of X.
  __device__ void gather(const BitStep& step) {
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

  __device__ void multiply(const BitStep& step, int number) {
    std::uint32_t pattern[2];
    step.expand<T>(number, pattern);
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

  /// Multiplies the rows by their scales and brings them to Y.
  __device__ void store(VertexId first_row) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const VertexId row = first_row + lane() % 4 * 2 + odd;
      if (row >= launch_.matrix.num_rows) continue;
      this->scale_row(row, odd, 2 + odd);
      T* const y = this->template row_of_y<T>(row);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const int feature = first_feature(part);
        if (feature >= launch_.features.count) continue;
        float sums[2 * words];
#pragma unroll
        for (int i = 0; i < 2 * words; ++i) sums[i] = sums_[part * words + i / 2][i % 2 * 2 + odd];
        this->template to_y<T, epilogue, true>(y, row, feature, sums);
      }
    }
  }

 private:
  using Base::lane;
  using Base::launch_;
  /// Tile i has the features 2 * i and 2 * i + 1 of the lane, for two rows each.
  using Base::sums_;
  static constexpr int part_width = 16 * words;

  __device__ static int first_feature(int part) {
    return static_cast<int>(blockIdx.y) * width + part * part_width + lane() / 4 * 2 * words;
  }

  const T* x_;
  int other_part_;  ///< from the first
  std::uint32_t rows_[parts][4][words];
};

/// Windows of 8 rows, their edges as bits.
struct BitWindows {
  static constexpr int steps_per_tile = 4;
  using Step = BitStep;
  template <class T, int width, bool epilogue>
  using Sums = BitSums<T, width, epilogue>;
  /// Blocks that a processor should hold.
  static constexpr int blocks(int bytes) { return bytes > 128 ? 5 : 7; }
};

}  // namespace tessera::ops
