// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/windows/edge_weights.cuh"
#include "ops/windows/plane_rows.cuh"

/// The products of the backward passes over windows of 64 rows: own rows of a warp times gathered
/// ones, and what cells add to gradients, their numbers in two parts.
namespace tessera::ops {

template <class T, int width>
struct TileProducts {
  static constexpr int heads = tall_block_heads(width);
  using Planes = PlaneRows<T, width * heads>;
  using Rows = typename Planes::Rows;
  using Part = typename Planes::Part;
  static constexpr int units = width / 8;

  /// Adds the products of the 16 rows from `first_row` on of those at `own` with the rows of two
  /// steps of a tile at `rows`: `cells[i]` are those of columns 8 i on, two of row g, then two of
  /// row g + 8. What lies beyond the end of the tile is anything.
  __device__ static void add_dots(float (&cells)[4][4], std::uint32_t own, int first_row,
                                  std::uint32_t rows, int h, int step) {
    // The product of two low parts is left out.
#pragma unroll
    for (int own_plane = Planes::planes - 1; own_plane >= 0; --own_plane) {
#pragma unroll
      for (int plane = Planes::planes - 1 - own_plane; plane >= 0; --plane) {
        add_dots_of(cells, own, first_row, own_plane, rows, plane, h, step);
      }
    }
  }

  /// Adds the products of a step's cells with the features of its rows.
  __device__ static void add_rows(HeadSums<Part, width>& sums, const StepWeights<Part>& weights,
                                  std::uint32_t rows, int h, int step) {
#pragma unroll
    for (int plane = Planes::planes - 1; plane >= 0; --plane) {
#pragma unroll
      for (int k = 0; k < units; k += 2) {
        std::uint32_t blocks[4];
        const int unit = Planes::unit_in(plane, h * units + k);
        if constexpr (width == 8) {
          Rows::load_column(blocks, rows, step, unit);
        } else {
          Rows::load_columns(blocks, rows, step, unit);
        }
#pragma unroll
        for (int half = 0; half < (width == 8 ? 1 : 2); ++half) {
          const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
          if (plane == 0) cuda::multiply_16x8<Part>(sums.features[k + half], weights.low, b);
          cuda::multiply_16x8<Part>(sums.features[k + half], weights.high, b);
        }
      }
    }
  }

 private:
  __device__ static void add_dots_of(float (&cells)[4][4], std::uint32_t own, int first_row,
                                     int own_plane, std::uint32_t rows, int plane, int h,
                                     int step) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int row = first_row + lane % 16;
    if constexpr (width == 8) {
      std::uint32_t a[4];
      cuda::load_blocks(a, own + Rows::offset(row, Planes::unit_in(own_plane, h)));
      a[2] = a[3] = 0;
      std::uint32_t blocks[4];
      Rows::load_rows_of_four(blocks, rows, 2 * step, Planes::unit_in(plane, h));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t b[2] = {blocks[i], 0};
        cuda::multiply_16x8<Part>(cells[i], a, b);
      }
    } else {
#pragma unroll
      for (int k = 0; k < units; k += 2) {
        const int unit = h * units + k;
        std::uint32_t a[4];
        cuda::load_blocks(a, own + Rows::offset(row, Planes::unit_in(own_plane, unit + lane / 16)));
#pragma unroll
        for (int group = 0; group < 4; group += 2) {
          std::uint32_t blocks[4];
          Rows::load_rows(blocks, rows, 2 * step + group, Planes::unit_in(plane, unit));
          const std::uint32_t first[2] = {blocks[0], blocks[1]};
          const std::uint32_t second[2] = {blocks[2], blocks[3]};
          cuda::multiply_16x8<Part>(cells[group], a, first);
          cuda::multiply_16x8<Part>(cells[group + 1], a, second);
        }
      }
    }
  }
};

}  // namespace tessera::ops
