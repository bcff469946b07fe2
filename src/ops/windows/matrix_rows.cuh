// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "cuda/mma_rows.cuh"
#include "cuda/wgmma.cuh"
#include "ops/windows/edge_weights.cuh"
#include "ops/windows/plane_rows.cuh"

/// Products of one head's weights with gathered rows, 64 rows of a window at once: by groups of
/// four warps where the GPU and the layout of the rows allow that, else by each warp for its 16.
namespace tessera::ops {

/// Calls body of how many steps a tile has, as a constant: groups of warps multiply without waiting
/// for each other only where nothing branches between their products.
template <class Body>
__device__ void with_constant_steps(int num_steps, Body&& body) {
  static_assert(tiles::tile_columns / tiles::step_columns == 4);
  switch (num_steps) {
    case 1: return body(std::integral_constant<int, 1>());
    case 2: return body(std::integral_constant<int, 2>());
    case 3: return body(std::integral_constant<int, 3>());
    default: return body(std::integral_constant<int, 4>());
  }
}

template <class T, int width>
struct MatrixRows {
  using Planes = PlaneRows<T, width * tall_block_heads(width)>;
  using Rows = typename Planes::Rows;
  using Part = typename Planes::Part;
  /// As a lane holds them: four for every eight features, two of row g, then two of row g + 8.
  using Sums = float[width / 2];

  /// Whether a plane is whole blocks as matrix units read them.
  static constexpr bool whole_blocks = width % 64 == 0;
#ifdef TESSERA_HAS_WGMMA
  static constexpr bool by_groups = whole_blocks;
#else
  static constexpr bool by_groups = false;
#endif

  /// Groups of warps read the registers of weights themselves: they are complete here.
  template <class Weights>
  __device__ static void keep(Weights& weights) {
    if constexpr (by_groups) {
      cuda::keep_in_place(weights.high);
      cuda::keep_in_place(weights.low);
    }
  }
  /// Before the products, with all weights known.
  __device__ static void begin(Sums& sums) {
    if constexpr (by_groups) {
      cuda::keep_in_place(sums);
      cuda::wgmma_fence();
    }
  }
  /// The same for weights that became known while other products are under way.
  template <class Weights, int count>
  __device__ static void begin_step(Weights (&weights)[count]) {
#pragma unroll
    for (Weights& of : weights) keep(of);
    if constexpr (by_groups) cuda::wgmma_fence();
  }
  /// Adds those of one step of the tile whose rows lie at `rows`.
  template <class Weights>
  __device__ static void add(Sums& sums, const Weights& weights, std::uint32_t rows, int h,
                             int step) {
    // The product of two low parts is left out.
    if constexpr (whole_blocks) {
      if constexpr (Planes::planes == 2) multiply(sums, weights.high, rows, 1, step);
      multiply(sums, weights.low, rows, 0, step);
      multiply(sums, weights.high, rows, 0, step);
    } else {
#pragma unroll
      for (int unit = 0; unit < width / 8; unit += 2) {
        if constexpr (Planes::planes == 2) {
          std::uint32_t low_blocks[4];
          load_units(low_blocks, rows, 1, h, step, unit);
          multiply_units(sums, weights.high, low_blocks, unit);
        }
        std::uint32_t blocks[4];
        load_units(blocks, rows, 0, h, step, unit);
        multiply_units(sums, weights.low, blocks, unit);
        multiply_units(sums, weights.high, blocks, unit);
      }
    }
  }
  __device__ static void commit() {
    if constexpr (by_groups) cuda::wgmma_commit();
  }
  /// The weights of all but the products that were committed last may then change.
  __device__ static void wait_for_all_but_last() {
    if constexpr (by_groups) asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  __device__ static void wait(Sums& sums) {
    if constexpr (by_groups) {
      cuda::wgmma_wait();
      cuda::keep_in_place(sums);
    }
  }

 private:
  __device__ static void multiply(Sums& sums, const std::uint32_t (&weights)[4], std::uint32_t rows,
                                  int plane, int step) {
    const auto from = rows + static_cast<std::uint32_t>(plane * (width / 64) * Rows::block_bytes);
    if constexpr (by_groups) {
      cuda::wgmma<Part>(sums, weights,
                        cuda::wgmma_descriptor(from, Rows::block_bytes) +
                            static_cast<std::uint64_t>(step) * cuda::wgmma_step);
    } else {
      cuda::multiply_rows<Part>(sums, weights,
                                from + static_cast<std::uint32_t>(step * tiles::step_columns * 128),
                                Rows::block_bytes);
    }
  }

  // Units of eight features, two at once where the head has two.

  __device__ static void load_units(std::uint32_t (&blocks)[4], std::uint32_t rows, int plane,
                                    int h, int step, int unit) {
    const int at = Planes::unit_in(plane, h * (width / 8) + unit);
    if constexpr (width == 8) {
      Rows::load_column(blocks, rows, step, at);
    } else {
      Rows::load_columns(blocks, rows, step, at);
    }
  }
  __device__ static void multiply_units(Sums& sums, const std::uint32_t (&weights)[4],
                                        const std::uint32_t (&blocks)[4], int unit) {
#pragma unroll
    for (int half = 0; half < (width == 8 ? 1 : 2); ++half) {
      const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
      const int first = 4 * (unit + half);
      float four[4] = {sums[first], sums[first + 1], sums[first + 2], sums[first + 3]};
      cuda::multiply_16x8<Part>(four, weights, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[first + i] = four[i];
    }
  }
};

}  // namespace tessera::ops
