// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/offsets.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/windows_32/launch.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// A warp takes a window, in steps of 16 of its columns. Four lanes load a row, 8 numbers each: a
/// dot product does not care for the order of numbers that is the same in both rows.
namespace tessera::ops {
namespace {

using Element = __nv_bfloat16;
constexpr int warps = 4, columns = tiles::step_columns;

/// Eight numbers of a row; zeros behind the last number and the last row.
__device__ void load(std::uint32_t (&to)[4], const ConstOperand& from, std::int64_t row,
                     std::int64_t at) {
  const auto* const place = static_cast<const Element*>(from.data) + row * from.stride + at;
  const auto part = cuda::Vector<Element, 16>::load_if(at < from.cols && row < from.rows, place);
  memcpy(to, &part.raw, sizeof(to));
}

__global__ void dots_32(const Dots32Windows windows, const ConstOperand u, const ConstOperand v,
                        const Operand edges) {
  __shared__ float results[warps][dots_32_rows][columns + 1];
  auto& result = results[threadIdx.x / 32];
  const int lane = threadIdx.x % 32, group = lane / 4, quarter = lane % 4;
  const std::int64_t window = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  const std::int64_t first_row = window * dots_32_rows;
  if (first_row >= u.rows) return;
  // A lane stores the results of its own row; this is the row's next edge.
  EdgeOffset edge = cuda::offset_at(windows.row_offsets, min(first_row + lane, u.rows));
  for (auto step = windows.step_offsets[window]; step < windows.step_offsets[window + 1]; ++step) {
    float sums[2][2][4] = {};  // of 16 rows and 8 columns each
    for (std::int64_t done = 8 * quarter; done - 8 * quarter < u.cols; done += 32) {
      std::uint32_t us[4][4], vs[2][4];
      for (int i = 0; i < 4; ++i) load(us[i], u, first_row + 8 * i + group, done);
      for (int i = 0; i < 2; ++i) {
        load(vs[i], v, windows.columns[step * columns + 8 * i + group], done);
      }
      for (int k = 0; k < 8; ++k) {
        const int of_u = k / 4, of_v = k / 2 % 2, word = k % 2 * 2;
        const std::uint32_t a[4] = {us[2 * of_u][word], us[2 * of_u + 1][word],
                                    us[2 * of_u][word + 1], us[2 * of_u + 1][word + 1]};
        const std::uint32_t b[2] = {vs[of_v][word], vs[of_v][word + 1]};
        cuda::multiply_16x8<Element>(sums[of_u][of_v], a, b);
      }
    }
    for (int k = 0; k < 16; ++k) {
      result[k / 8 * 16 + k / 2 % 2 * 8 + group][k / 4 % 2 * 8 + quarter * 2 + k % 2] =
          sums[k / 8][k / 4 % 2][k % 4];
    }
    __syncwarp();
    for (int j = 0; j < columns; ++j) {  // columns rise, and so do the edges of a row
      if ((windows.rows_of_column[step * columns + j] >> lane & 1) == 0) continue;
      static_cast<Element*>(edges.data)[edge++ * edges.stride] =
          cuda::narrow<Element>(result[lane][j]);
    }
    __syncwarp();
  }
}

}  // namespace

void launch_dots_32(const Dots32Windows& windows, const ConstOperand& u, const ConstOperand& v,
                    const Operand& edges, Stream stream) {
  const dim3 blocks(cuda::num_blocks(u.rows, warps * dots_32_rows));
  cuda::launch(dots_32, blocks, 32 * warps, stream, windows, u, v, edges);
}

}  // namespace tessera::ops
