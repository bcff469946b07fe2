// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/matrix_rows.cuh"
#include "ops/attention/cuda/tall/tile_products.cuh"

/// Products of the own rows of a window with rows of a tile, 64 rows at once: by groups of four
/// warps, whose matrix units read both from shared memory, where the GPU allows that, else by each
/// warp for its 16.
namespace tessera::ops {

/// Cells of a tile in the order of matrix units: `of[i]` are those of columns 8 i on, two of row g,
/// then two of row g + 8.
template <int steps>
struct TileCells {
  float of[2 * steps][4];
};

template <class T, int width>
struct GroupDots {
  using Rows = typename PlaneRows<T, width>::Rows;
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;

  /// From one row in shared memory to the next.
  static constexpr int row_bytes = Rows::row_bytes;

  /// Asks for the cells of `steps` steps, the first of whose rows is at `rows`; they are there
  /// after `wait`.
  template <int steps>
  __device__ static void ask(TileCells<steps>& cells, std::uint32_t own, std::uint32_t rows) {
    static_assert(steps % 2 == 0);
    if constexpr (by_groups) {
      auto& sums = reinterpret_cast<float(&)[8 * steps]>(cells.of);
      cuda::wgmma_fence();
#pragma unroll
      for (int step = 0; step < width / 16; ++step) {
        multiply(sums, descriptor(own, step), descriptor(rows, step), step > 0);
      }
      cuda::wgmma_commit();
    } else {
#pragma unroll
      for (int step = 0; step < steps; step += 2) {
        auto& pair = reinterpret_cast<float(&)[4][4]>(cells.of[2 * step]);
#pragma unroll
        for (auto& group : pair) {
#pragma unroll
          for (float& cell : group) cell = 0;
        }
        const int first_row = static_cast<int>(threadIdx.x / 32 * 16);
        TileProducts<T, width>::add_dots(pair, own, first_row, rows, 0, step);
      }
    }
  }
  template <int steps>
  __device__ static void wait(TileCells<steps>& cells) {
    if constexpr (by_groups) {
      cuda::wgmma_wait();
      cuda::keep_in_place(reinterpret_cast<float(&)[8 * steps]>(cells.of));
    }
  }

 private:
  /// 16 features of rows from the one at `rows` on.
  __device__ static std::uint64_t descriptor(std::uint32_t rows, int step) {
    const int block = step / 4;
    return cuda::wgmma_descriptor(
        rows + static_cast<std::uint32_t>(block * Rows::block_bytes + step % 4 * 32),
        Rows::block_bytes);
  }

#define TESSERA_GROUP_DOTS(columns, element, count, operands)                             \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" operands                        \
               ", 0;\n"                                                                   \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." element "." element \
               " {" TESSERA_PLACES_##count "}, " TESSERA_GROUP_OPERANDS_##count           \
               ", adds, 1, 1, 0, 0;\n}\n"                                                 \
               : TESSERA_SUMS_##count(d, 0)                                               \
               : "l"(own), "l"(rows), "r"(static_cast<int>(adds)))
#define TESSERA_GROUP_OPERANDS_16 "%16, %17"
#define TESSERA_GROUP_OPERANDS_32 "%32, %33"
  /// D[64][count * 2] = (adds ? D : 0) + own[64][16] rows[count * 2][16]^T.
  template <int count>
  __device__ static void multiply(float (&d)[count], std::uint64_t own, std::uint64_t rows,
                                  bool adds) {
    constexpr bool is_bf16 = std::is_same_v<T, __nv_bfloat16>;
    if constexpr (count == 16) {
      if constexpr (is_bf16) TESSERA_GROUP_DOTS("32", "bf16", 16, "18");
      if constexpr (!is_bf16) TESSERA_GROUP_DOTS("32", "f16", 16, "18");
    } else {
      static_assert(count == 32);
      if constexpr (is_bf16) TESSERA_GROUP_DOTS("64", "bf16", 32, "34");
      if constexpr (!is_bf16) TESSERA_GROUP_DOTS("64", "f16", 32, "34");
    }
  }
#undef TESSERA_GROUP_DOTS
#undef TESSERA_GROUP_OPERANDS_16
#undef TESSERA_GROUP_OPERANDS_32
};

}  // namespace tessera::ops
