// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/blocks_8x8.cuh"
#include "cuda/wgmma.cuh"

/// Products of rows with rows on Hopper's matrix units: D[64][64] += A[64][k] B[64][k]^T. Both
/// sides keep the k of one row side by side, as features lie in memory, 32 bytes per step.
namespace tessera::cuda {

/// How rows of `row_bytes` (32, 64 or 128) bytes lie in shared memory: one after the other, their
/// 16-byte units exchanged so that neither writing rows nor reading columns makes banks collide.
/// The order repeats every 8 rows.
template <int row_bytes>
struct RowLayout {
  static_assert(row_bytes == 32 || row_bytes == 64 || row_bytes == 128);
  static constexpr int units = row_bytes / 16;
  static constexpr int rows_per_line = 128 / row_bytes;

  __device__ static std::uint32_t offset(int row, int unit) {
    return static_cast<std::uint32_t>(row * row_bytes + (unit ^ row / rows_per_line % units) * 16);
  }

  /// Describes rows that begin at `address`, a multiple of 8 rows.
  __device__ static std::uint64_t descriptor(std::uint32_t address) {
    constexpr std::uint64_t order = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
    constexpr std::uint64_t eight_rows = 8 * row_bytes >> 4;
    return order << 62 | eight_rows << 32 | std::uint64_t{1} << 16 | std::uint64_t{address >> 4};
  }
};

/// What a descriptor advances by for each step.
inline constexpr std::uint64_t row_step = 32 >> 4;

/// The A operand of one step from 16 rows in shared memory; a lane gives the address of one row's
/// 16 bytes: lanes 0-15 the first half of the step in rows 0-15, lanes 16-31 the second.
__device__ inline void load_fragment(std::uint32_t (&fragment)[4], std::uint32_t address) {
  load_blocks(fragment, address);
}

/// Stores four 8 x 8 blocks of 16-bit numbers that lie as results do; a lane gives the address of a
/// row of 16 bytes: lanes 0-7 those of the first block, and so on.
__device__ inline void store_blocks(std::uint32_t address, const std::uint32_t (&blocks)[4]) {
#if __CUDA_ARCH__ < 900
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t row = __shfl_sync(~0u, address, static_cast<int>(8 * i + lane / 4));
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(row + lane % 4 * 4), "r"(blocks[i]) : "memory");
  }
#else
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(blocks[0]), "r"(blocks[1]), "r"(blocks[2]), "r"(blocks[3])
               : "memory");
#endif
}

#define TESSERA_WGMMA_ROWS(shape, transposed)                            \
  asm volatile(                                                          \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                       \
      "wgmma.mma_async.sync.aligned.m64n64" shape " {" TESSERA_PLACES_32 \
      "}, {%32, %33, %34, %35}, %36, p, 1, 1" transposed ";\n}"          \
      : TESSERA_SUMS_32(d, 0)                                            \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds))

/// One step. Without `adds` what was in `d` is forgotten. fp32 is multiplied as tf32: low bits are
/// ignored.
template <class T>
__device__ inline void wgmma_rows(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                  int adds) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    TESSERA_WGMMA_ROWS("k16.f32.bf16.bf16", ", 0");
  } else if constexpr (std::is_same_v<T, __half>) {
    TESSERA_WGMMA_ROWS("k16.f32.f16.f16", ", 0");
  } else {
    static_assert(std::is_same_v<T, float>);
    TESSERA_WGMMA_ROWS("k8.f32.tf32.tf32", "");
  }
}
#undef TESSERA_WGMMA_ROWS

}  // namespace tessera::cuda
