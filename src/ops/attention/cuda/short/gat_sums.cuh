// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_windows.cuh"
#include "ops/attention/cuda/short/row_states.cuh"

/// Sums over the edges of either side in bf16, as passes of GAT over windows of 16 rows have them,
/// and what lanes need besides to make results of them.
namespace tessera::ops {

using GatPart = __nv_bfloat16;

/// A term in both halves of a word.
__device__ inline std::uint32_t twice(GatPart term) {
  const __nv_bfloat162 both = {term, term};
  return reinterpret_cast<const std::uint32_t&>(both);
}
/// That of row g + 8 `row` of the window, 0 where it has no such row.
__device__ inline GatPart own_term(const WindowsLaunch& launch, const tiles::Piece& piece,
                                   int row) {
  const int place = WarpLane::group() + 8 * row;
  GatPart term = cuda::narrow<GatPart>(0.0f);
  if (place < piece.num_rows) {
    term = gat_term<GatPart>(launch.target, launch.target_stride, piece.first_row + place);
  }
  return term;
}

/// The sums over the edges of one side.
template <int width>
struct GatSideSums {
  FeatureSums<GatPart, width> rows;
  /// Of ones or of D, for rows 2q and 2q + 1, then for those 8 further on.
  float numbers[4];

  __device__ void clear() {
    rows.clear();
#pragma unroll
    for (float& sum : numbers) sum = 0;
  }
  /// `numbers` of ones.
  template <class Weigh>
  __device__ void add(Weigh&& weigh, const StepOperands<GatPart>& weights) {
    constexpr std::uint32_t one = 0x3f803f80u;
    add(weigh, weights, {one, one});
  }
  /// `of_columns` are operands of 8 rows that the first and the second half of the window meet.
  template <class Weigh>
  __device__ void add(Weigh&& weigh, const StepOperands<GatPart>& weights,
                      const std::uint32_t (&of_columns)[2]) {
    weigh(rows, weights);
    const std::uint32_t operands[2][4] = {{of_columns[0], 0, of_columns[1], 0},
                                          {0, of_columns[0], 0, of_columns[1]}};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      cuda::multiply_16x8<GatPart>(numbers, operands[half], weights.low[half]);
      cuda::multiply_16x8<GatPart>(numbers, operands[half], weights.high[half]);
    }
  }
};

/// Factors where there is an edge of that side, in `cells`.
__device__ inline void mask_factors(StepOperands<GatPart>& weights, int row, int i,
                                    std::uint32_t high, std::uint32_t low, std::uint32_t cells) {
  weights.high[row][i] = high & cells;
  weights.low[row][i] = low & cells;
}

/// Rows of the window itself, 16 bytes of rows 2q, 2q + 1, 2q + 8 and 2q + 9 for each lane as it
/// has sums of them: copied by each lane for itself.
template <int width>
class OwnSumRows {
  static constexpr int chunks = width / 64;

 public:
  static constexpr int bytes = 16 * width * 2;

  __device__ OwnSumRows(char* memory, const void* matrix, std::int64_t stride)
      : memory_(memory + WarpLane::number() * 16),
        rows_(matrix, stride, width, WarpLane::group() * 8) {}

  __device__ void start(const tiles::Piece& piece) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = place_of(i / 2, i % 2);
      if (place >= piece.num_rows) continue;
      const char* const from = rows_.at(piece.first_row + place);
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        cuda::copy_16_async(cuda::shared_address(at(i, chunk)), from + chunk * 128);
      }
    }
  }
  /// Of row 8 half + 2q + odd, when the copies of this lane have come.
  __device__ void load(int half, int odd, int chunk, float (&features)[8]) const {
    widen_unit<GatPart>(*reinterpret_cast<const uint4*>(at(2 * half + odd, chunk)), features);
  }

  __device__ static int place_of(int half, int odd) {
    return 8 * half + 2 * WarpLane::quarter() + odd;
  }

 private:
  __device__ char* at(int i, int chunk) const { return memory_ + (i * chunks + chunk) * 512; }

  char* memory_;
  FeatureRows rows_;
};

/// Waits for the copies that a lane asked for when a piece began. They came with the first of its
/// steps, and the rows of the last step that was asked for need not have come yet.
__device__ inline void wait_for_own_rows(const tiles::Piece& piece, bool by_steps) {
  if (by_steps && piece.num_steps > 1) {
    cuda::wait_for_copies<1>();
  } else {
    wait_for_all_copies();
  }
}

/// Of what a lane has of its features, over all features of a row.
__device__ inline float over_groups(float sum) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

/// A number of row g + 8 `half`, for row 8 half + 2q + odd.
__device__ inline float to_sum_row(float of_cells, int odd) {
  return __shfl_sync(~0u, of_cells, 4 * (2 * WarpLane::quarter() + odd));
}

}  // namespace tessera::ops
