// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/windows/loaders.cuh"

namespace tessera::ops {

/// 64 16-bit features of 192 rows of X in a stage, for 256 threads. Windows of small graphs have a
/// few more columns than their 128 rows, which are one stage here and two of 128. A thread brings
/// the same 16 bytes of every 32nd row.
struct LongShare {
  static constexpr int rows = 192;
  static constexpr int units = 8;
  static constexpr int rows_apart = 256 / units;
  static constexpr int count = rows / rows_apart;

  int unit;
  int first_row;
  int live_row;        ///< the same; none of a stage where there are no such features
  const char* source;  ///< in the first row of X
  std::uint32_t row_bytes;

  __device__ explicit LongShare(const TallLaunch& launch)
      : unit(static_cast<int>(threadIdx.x) % units),
        first_row(static_cast<int>(threadIdx.x) / units),
        live_row(unit * 8 >= launch.features.end ? rows : first_row),
        source(static_cast<const char*>(launch.features.x) + unit * 16),
        row_bytes(static_cast<std::uint32_t>(launch.features.x_stride) * 2) {
    // One register pair, not a sum that is formed again for every row.
    asm volatile("" : "+l"(source));
  }

  /// Asks for the rows of a stage's columns; the first goes to `to`.
  template <class Layout>
  __device__ void copy(int num_steps, const VertexId* listed, std::uint32_t to) const {
    // All of them before the first is asked for, be they old ones that no row is brought for.
    std::uint32_t columns[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      columns[i] = static_cast<std::uint32_t>(listed[first_row + i * rows_apart]);
    }
    const int left = num_steps * 16 - live_row;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      copy_if(i * rows_apart < left, to + static_cast<std::uint32_t>(i * rows_apart * 128),
              source + std::uint64_t{columns[i]} * row_bytes);
    }
  }

 private:
  /// As `copy_16_async`, with a condition and no branch.
  __device__ static void copy_if(bool wanted, std::uint32_t shared, const void* global) {
    asm volatile(
        "{ .reg .pred p; setp.ne.s32 p, %0, 0;\n"
        "  @p cp.async.cg.shared.global [%1], [%2], 16; }" ::"r"(static_cast<int>(wanted)),
        "r"(shared), "l"(global)
        : "memory");
  }
};

using LongCopyLoader = CopyLoader<__nv_bfloat16, 64, false, 2, true, false, false, LongShare>;

}  // namespace tessera::ops
