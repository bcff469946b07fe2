// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include "ops/attention/cuda/packed/lanes.cuh"
#include "ops/attention/cuda/tall/gat.cuh"

/// Weights of GAT as products of fp16 factors, two cells at once. With l and r the terms of a row
/// and a column in powers of two, a weight is, relative to 2^(slope l + 4),
///
///     max(2^((1 - slope) l) 2^(r - 4), 2^(slope r - 4))
///
/// for a slope in [0, 1]: one factor per row and two per column, and no base that has to follow.
/// While terms are of at most 9.9, all factors that the larger of both has, and that one, are
/// normal numbers of fp16: three roundings of 2^-11 at most.
namespace tessera::ops {

inline constexpr float packed_base = 4;
__device__ inline bool is_packed_term(float term) { return fabsf(term) <= 9.9f; }

/// Beside the rows of V: what columns bring to weights.
template <int heads>
struct PackedStage {
  struct alignas(16) Factors {
    std::uint32_t own[2], sloped[2];
  };
  Factors factors[heads][lane_places];
  WarpFlags out_of_range;

  /// The terms of two neighbouring columns, the first of them even; returns whether they are within
  /// the range.
  __device__ bool put(int h, int column, float even, float odd, float slope) {
    const LaneColumns place(column);
    Factors& to = factors[h][place.at];
    to.own[place.word] =
        packed<__half>(power_of_2(even - packed_base), power_of_2(odd - packed_base));
    to.sloped[place.word] = packed<__half>(power_of_2(fmaf(slope, even, -packed_base)),
                                           power_of_2(fmaf(slope, odd, -packed_base)));
    return is_packed_term(even) && is_packed_term(odd);
  }
};

/// The terms of the rows of a window in powers of two, and their factors. Each warp has its own 16
/// rows. Registers are dear.
template <int heads>
struct PackedRows {
  /// Of two heads each, each factor twice in a word: rows g and g + 8.
  uint4 factors[tall_attention_threads / 32][heads / 2][8];
  float terms[tall_attention_height][heads];
  uint2 ones[heads][8];  ///< per head: 1 in its columns of an operand, 0 in others

  /// By the first threads of a block.
  __device__ void put_ones() {
    if (threadIdx.x >= heads * 8) return;
    const int column = static_cast<int>(threadIdx.x % 8);
    const int h = static_cast<int>(threadIdx.x / 8);
    const std::uint32_t one = column * heads / 8 == h ? 0x3c003c00u : 0u;
    ones[h][column] = make_uint2(one, one);
  }

  /// Heads that a lane of a row looks after, with others where there are less than four; and the
  /// i-th of them.
  static constexpr int lane_heads = heads > 4 ? heads / 4 : 1;
  __device__ static int head_of_lane(int i) {
    const int q = static_cast<int>(threadIdx.x % 4);
    return heads > 4 ? q * lane_heads + i : q * heads / 4;
  }
  /// The lane of its row that looks after a head.
  __device__ static constexpr int lane_of_head(int h) {
    return heads > 4 ? h / lane_heads : h * (4 / heads);
  }

  /// Of row g + 8 `row` of this lane's warp.
  __device__ float term(int h, int row) const { return terms[place_of(row)][h]; }
  /// What its weights are relative to.
  __device__ float base(int h, int row, float slope) const {
    return fmaf(slope, term(h, row), packed_base);
  }

  /// Lanes of a row take their heads; returns whether their terms are within the range.
  template <class T>
  __device__ bool load(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                       int first_head) {
    bool serve = true;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * lane_heads; ++i) {
      const int h = head_of_lane(i / 2);
      const int place = place_of(i % 2);
      const T* const from = static_cast<const T*>(launch.target) +
                            (std::int64_t{piece.first_row} + place) * launch.target_stride;
      const bool wanted = place < piece.num_rows && first_head + h < launch.heads;
      const float term = wanted ? cuda::widen(__ldg(from + first_head + h)) * log2_of_e : 0.0f;
      const __half2 factor = __float2half2_rn(power_of_2((1 - launch.slope) * term));
      reinterpret_cast<__half2*>(&pair(h / 2))[h % 2 * 2 + i % 2] = factor;
      terms[place][h] = term;
      serve = serve && is_packed_term(term);
    }
    __syncwarp();
    return serve;
  }
  /// The factors of heads 2 `index` and 2 `index` + 1.
  __device__ uint4& pair(int index) {
    return factors[threadIdx.x / 32][index][threadIdx.x % 32 / 4];
  }
  __device__ const uint4& pair(int index) const {
    return factors[threadIdx.x / 32][index][threadIdx.x % 32 / 4];
  }

 private:
  __device__ static int place_of(int row) {
    return static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(threadIdx.x % 32) / 4 +
           8 * row;
  }
};

/// The weights of 16 rows and 16 columns as an operand, by the factors of rows g and g + 8; cells
/// without an edge are 0.
__device__ inline void find_packed_weights(std::uint32_t (&a)[4], const std::uint32_t (&rows)[2],
                                           const uint4& columns, const std::uint32_t (&edges)[4]) {
  const auto pair = [](const std::uint32_t& word) {
    return reinterpret_cast<const __half2&>(word);
  };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half2 larger = __hmax2(__hmul2(pair(rows[i % 2]), pair(i < 2 ? columns.x : columns.y)),
                                   pair(i < 2 ? columns.z : columns.w));
    a[i] = reinterpret_cast<const std::uint32_t&>(larger) & edges[i];
  }
}

}  // namespace tessera::ops
