// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/fragments.cuh"

namespace tessera::ops {

/// The rows of the window itself as operands of products with gathered rows: those of each lane lie
/// in shared memory for itself, since registers are scarcer.
template <int width>
class OwnRows {
 public:
  static constexpr int chunks = width / 32;
  static constexpr int bytes = 16 * width * 2;

  __device__ OwnRows(char* memory, const void* matrix, std::int64_t stride)
      : memory_(memory + WarpLane::number() * 16),
        rows_(matrix, stride, width, WarpLane::quarter() * 8) {}

  /// Asks for the rows of a window, zeros for those that it does not have. `turn` is which of
  /// several places they go to.
  __device__ void start(const tiles::Piece& piece, int turn) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      const bool exists = place < piece.num_rows && piece.num_steps > 0;
      const char* const from = rows_.at(piece.first_row + (exists ? place : 0));
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::uint32_t to = cuda::shared_address(at(chunk, row, turn));
        if (exists) {
          cuda::copy_16_async(to, from + chunk * 64);
        } else {
          cuda::zero_16_async(to, from);
        }
      }
    }
  }

  __device__ uint4 load(int chunk, int row, int turn) const {
    return *reinterpret_cast<const uint4*>(at(chunk, row, turn));
  }
  /// Four features of any row, which another lane may have asked for: half a unit of eight.
  __device__ uint2 load_half(int row, int unit, int half, int turn) const {
    const int lane = row % 8 * 4 + unit % 4;
    return *reinterpret_cast<const uint2*>(at(unit / 4, row / 8, turn) +
                                           (lane - WarpLane::number()) * 16 + half * 8);
  }

 private:
  __device__ char* at(int chunk, int row, int turn) const {
    return memory_ + turn * bytes + (2 * chunk + row) * 512;
  }

  char* memory_;
  FeatureRows rows_;
};

}  // namespace tessera::ops
