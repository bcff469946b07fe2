// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/cuda/exponentials.cuh"

/// What the backward passes over windows of 16 rows share. With P the weights, which come again
/// from the scores and `log_sum`, and D = dO . O of a target,
///
///     dS = P (dO . V - D)
///
/// One sweep over windows of targets leaves log_sum, in powers of two, and D for the other, over
/// windows of sources.
namespace tessera::ops {

__device__ inline float2* row_state_at(const WindowsLaunch& launch, std::int64_t row) {
  return static_cast<float2*>(launch.row_state) + row * launch.heads + blockIdx.y;
}

/// log_sum of row g + 8 `row` of the window as it lies in memory: who multiplied it would wait.
__device__ inline float own_log_sum(const WindowsLaunch& launch, const tiles::Piece& piece,
                                    int row) {
  const int place = WarpLane::group() + 8 * row;
  if (place >= piece.num_rows) return 0;
  const std::int64_t vertex = std::int64_t{piece.first_row} + place;
  return __ldg(launch.log_sum + vertex * launch.log_sum_stride + blockIdx.y);
}

/// The same in shared memory, of both rows of a lane for itself: registers that are loaded during
/// one window and looked at in the next are waited for with all that was asked for since.
class HeldLogSums {
 public:
  static constexpr int bytes = 32 * 2 * static_cast<int>(sizeof(float));

  __device__ explicit HeldLogSums(char* memory)
      : memory_(reinterpret_cast<float*>(memory) + 2 * WarpLane::number()) {}

  __device__ void start(const WindowsLaunch& launch, const tiles::Piece& piece) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      if (place < piece.num_rows) {
        const std::int64_t vertex = std::int64_t{piece.first_row} + place;
        copy(memory_ + row, launch.log_sum + vertex * launch.log_sum_stride + blockIdx.y);
      } else {
        memory_[row] = 0;
      }
    }
  }
  /// When the copies of this lane have come.
  __device__ float load(int row) const { return memory_[row]; }

 private:
  __device__ static void copy(float* to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(cuda::shared_address(to)),
                 "l"(from)
                 : "memory");
  }

  float* memory_;
};

/// The state of that row, of whose D this lane has found a part; leaves it for the other sweep.
__device__ inline float2 make_row_state(const WindowsLaunch& launch, const tiles::Piece& piece,
                                        int row, float log_sum, float dot) {
  dot += __shfl_xor_sync(~0u, dot, 1);
  dot += __shfl_xor_sync(~0u, dot, 2);
  const float2 state = {log_sum * log2_of_e, dot};
  const int place = WarpLane::group() + 8 * row;
  if (WarpLane::quarter() == 0 && place < piece.num_rows) {
    *row_state_at(launch, std::int64_t{piece.first_row} + place) = state;
  }
  return state;
}

template <class T>
__device__ void widen_unit(const uint4& raw, float (&values)[8]) {
  cuda::Vector<T, 16> vector;
  vector.raw = raw;
  vector.widen_to(values);
}
template <class T>
__device__ float add_unit_product(const uint4& a, const uint4& b, float sum) {
  float x[8], y[8];
  widen_unit<T>(a, x);
  widen_unit<T>(b, y);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = fmaf(x[i], y[i], sum);
  return sum;
}

/// Scores, times `unit` in powers of two, become gradients of scores, products of values weights.
/// state(i, k) is that of the target of cell `of[i][k]`.
template <class State>
__device__ void weigh_cells(StepCells& scores, StepCells& products, float unit, std::uint32_t bits,
                            State&& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 of_target = state(i, k);
      const float weight = power_of_2(fmaf(scores.of[i][k], unit, -of_target.x));
      const bool exists = StepCells::exists(bits, i, k);
      scores.of[i][k] = exists ? weight * (products.of[i][k] - of_target.y) : 0.0f;
      products.of[i][k] = exists ? weight : 0.0f;
    }
  }
}

}  // namespace tessera::ops
