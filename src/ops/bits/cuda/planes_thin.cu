// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/store.cuh"

/// Products so small that a launch takes longer than they do: many thin blocks, whose warps share
/// K. Operands go from global memory into registers, A that stays before the kernel ahead is done,
/// and the sums of the warps meet in shared memory.
namespace tessera::ops {
namespace {

constexpr int thin_rows = 16;
constexpr int thin_width = 32;
constexpr int thin_warps = 8;
constexpr int thin_tiles = thin_width / 8;
constexpr int words_of_step = 8;
constexpr int planes_at_once = 4;
/// Rows of four lanes each fall into all banks.
constexpr int line = thin_width + 8;

/// Two neighbouring words of a row, which a lane has of a step; zeros where there are none. That
/// they are not the words of a fragment does not matter, since both operands have the same.
__device__ uint2 words_at(const BitRows& rows, int plane, std::int64_t row, std::int64_t word) {
  if (row >= rows.rows || word >= rows.row_words) return make_uint2(0, 0);
  return __ldcg(reinterpret_cast<const uint2*>(rows.words + plane * rows.plane_words +
                                               row * rows.row_words + word));
}

struct ThinLane {
  std::int64_t first_row = std::int64_t{blockIdx.x} * thin_rows + threadIdx.x % 32 / 4;
  std::int64_t first_col = std::int64_t{blockIdx.y} * thin_width + threadIdx.x % 32 / 4;

  __device__ static std::int64_t word(std::int64_t step) {
    return step * words_of_step + threadIdx.x % 4 * 2;
  }
  __device__ void load_a(const BitProduct& product, std::int64_t step,
                         std::uint32_t (&a)[4]) const {
    const uint2 upper = words_at(product.a, 0, first_row, word(step));
    const uint2 lower = words_at(product.a, 0, first_row + 8, word(step));
    a[0] = upper.x;
    a[1] = lower.x;
    a[2] = upper.y;
    a[3] = lower.y;
  }
  /// Adds what A shares with all planes of B in one step.
  __device__ void add(const BitProduct& product, std::int64_t step, const std::uint32_t (&a)[4],
                      std::int32_t (&sums)[thin_tiles][4]) const {
    for (int first = 0; first < product.b.planes; first += planes_at_once) {
      uint2 b[planes_at_once][thin_tiles];
#pragma unroll
      for (int plane = 0; plane < planes_at_once; ++plane) {
        if (first + plane >= product.b.planes) break;
#pragma unroll
        for (int tile = 0; tile < thin_tiles; ++tile) {
          b[plane][tile] = words_at(product.b, first + plane, first_col + tile * 8, word(step));
        }
      }
#pragma unroll
      for (int plane = 0; plane < planes_at_once; ++plane) {
        if (first + plane >= product.b.planes) break;
#pragma unroll
        for (int tile = 0; tile < thin_tiles; ++tile) {
          std::int32_t counts[4] = {};
          const std::uint32_t fragment[2] = {b[plane][tile].x, b[plane][tile].y};
          count_16x8(counts, a, fragment);
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[tile][i] += counts[i] << (first + plane);
        }
      }
    }
  }
};

__global__ __launch_bounds__(thin_warps * 32) void multiply_thin_planes(const BitProduct product) {
  __shared__ std::int32_t of_warps[thin_warps][thin_rows][line];
  cuda::let_next_begin();
  const ThinLane lane;
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t steps = (product.a.row_words + words_of_step - 1) / words_of_step;
  std::uint32_t a[4] = {};
  if (product.a_stays) lane.load_a(product, warp, a);
  cuda::wait_for_previous();
  std::int32_t sums[thin_tiles][4] = {};
  for (std::int64_t step = warp; step < steps; step += thin_warps) {
    if (!product.a_stays || step != warp) lane.load_a(product, step, a);
    lane.add(product, step, a, sums);
  }
#pragma unroll
  for (int tile = 0; tile < thin_tiles; ++tile) {
    std::int32_t* const to =
        &of_warps[warp][threadIdx.x % 32 / 4][tile * 8 + static_cast<int>(threadIdx.x) % 4 * 2];
    *reinterpret_cast<int2*>(to) = make_int2(sums[tile][0], sums[tile][1]);
    *reinterpret_cast<int2*>(to + 8 * line) = make_int2(sums[tile][2], sums[tile][3]);
  }
  __syncthreads();
  static_assert(thin_warps * 32 * 2 == thin_rows * thin_width);
  const int row = static_cast<int>(threadIdx.x) / (thin_width / 2);
  const int col = static_cast<int>(threadIdx.x) % (thin_width / 2) * 2;
  int2 sum = make_int2(0, 0);
#pragma unroll
  for (const auto& tile : of_warps) {
    const int2 part = *reinterpret_cast<const int2*>(&tile[row][col]);
    sum.x += part.x;
    sum.y += part.y;
  }
  store_pair(product, std::int64_t{blockIdx.x} * thin_rows + row,
             std::int64_t{blockIdx.y} * thin_width + col, sum.x, sum.y);
}

}  // namespace

const BitFunction thin_planes = {
    thin_rows,
    thin_width,
    0,
    false,
    [](const BitProduct&) {},
    [](const BitProduct& product, int, Stream stream) {
      cuda::launch_overlapped(multiply_thin_planes, bit_grid(product, thin_rows, thin_width, 1),
                              thin_warps * 32, stream, product);
    }};

}  // namespace tessera::ops
