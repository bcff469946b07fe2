// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/wgmma_rows.cuh"
#include "ops/gemm/cuda/normed_tiles.cuh"
#include "ops/gemm/cuda/stream_moments.cuh"

/// Both gradients of a dense layer before a batch norm, whose own gradient is made where it is
/// read: x, y and the gradient come from memory once, that of x goes there once.
///
///     all warps       convert a tile | barrier |                       | barrier | convert ...
///     groups 0 and 1                 |         | dY^T X, half each     |
///     group 2                        |         | dY W, writes, sums    |
///     copies          the next two tiles are on their way all the time
namespace tessera::ops {

/// The gradient of y at one place, straight from memory.
__device__ inline float plain_gradient(const NormedLaunch& launch, std::int64_t row,
                                       std::int64_t col) {
  float gradient = 0;
  if (launch.gradient.data != nullptr) {
    gradient = launch.gradient.data[row * launch.gradient.stride + col];
  } else {
    for (int k = 0; k < launch.inner; ++k) {
      gradient = fmaf(launch.left.data[row * launch.left.stride + k],
                      launch.right.data[k * launch.right.stride + col], gradient);
    }
  }
  return launch.columns[col].value(launch.y.data[row * launch.y.stride + col], gradient,
                                   launch.relu);
}

/// One number of grad_x and a block's share of one of grad_weight where planes could not hold the
/// factors: rare, so out of the way.
__device__ __noinline__ float plain_of_x(const NormedLaunch& launch, std::int64_t row,
                                         std::int64_t col) {
  float sum = 0;
  for (std::int64_t k = 0; k < launch.out; ++k) {
    sum = fmaf(plain_gradient(launch, row, k), launch.weight.data[k * launch.weight.stride + col],
               sum);
  }
  return sum;
}
__device__ __noinline__ float plain_of_weight(const NormedLaunch& launch, std::int64_t row,
                                              std::int64_t col) {
  float sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * normed_rows;
  for (std::int64_t first = std::int64_t{blockIdx.x} * normed_rows; first < launch.rows;
       first += step) {
    const std::int64_t end = min(launch.rows, first + normed_rows);
    for (std::int64_t i = first; i < end; ++i) {
      float x = launch.x.data[i * launch.x.stride + col];
      if (launch.x_columns.numbers != nullptr) {
        x = launch.x_columns.value(x, launch.x_columns.numbers[col]);
      }
      sum = fmaf(plain_gradient(launch, i, row), x, sum);
    }
  }
  return sum;
}

/// The product of a tile of gradients with the weight, 16 rows of it for a warp.
__device__ inline void multiply_by_weight(std::uint32_t memory, float (&products)[32]) {
#if defined(TESSERA_HAS_WGMMA)
  constexpr int pairs[6][2] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
  constexpr std::uint64_t plane_step = inner_plane_bytes >> 4;
  constexpr int steps_at_once = 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int line = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane % 16;
  const std::uint64_t right = cuda::wgmma_descriptor(memory + NormedLayout::weight_planes, 0);
#pragma unroll
  for (int first = 0; first < 4; first += steps_at_once) {
    std::uint32_t words[steps_at_once][num_planes][4];
#pragma unroll
    for (int i = 0; i < steps_at_once * num_planes; ++i) {
      const int step = first + i / num_planes;
      auto& fragment = words[i / num_planes][i % num_planes];
      cuda::load_fragment(fragment, memory + static_cast<std::uint32_t>(
                                                 NormedLayout::gradient_planes +
                                                 i % num_planes * inner_plane_bytes + line * 128 +
                                                 ((2 * step + lane / 16) ^ (line % 8)) * 16));
      cuda::keep_in_place(fragment);
    }
    cuda::wgmma_fence();
#pragma unroll
    for (int i = 0; i < steps_at_once; ++i) {
#pragma unroll
      for (const auto& [p, q] : pairs) {
        cuda::wgmma<__nv_bfloat16>(products, words[i][p],
                                   right + (first + i) * cuda::wgmma_step + q * plane_step);
      }
    }
    cuda::wgmma_commit();
    cuda::wgmma_wait();
    cuda::keep_in_place(products);
  }
#endif
}

/// Sums for the batch norm before the layer: of 16 columns for a lane's four lanes, added up over
/// the rows of a warp in fp32, over tiles in double.
class NormedSums {
 public:
  __device__ void add(const NormedLaunch& launch, const NormedTiles& tiles, int stage,
                      const float (&products)[32], std::int64_t first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int line = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int set = 0; set < 4; ++set) {
      float values[8] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int j = set * 2 + i;
        const int col = j * 8 + lane % 4 * 2;
        const float2 a = tiles.x_numbers(0, col), b = tiles.x_numbers(1, col);
        const float2 c = tiles.x_numbers(2, col);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (first + line + half * 8 >= launch.rows) continue;
          const float2 x = tiles.raw_x(stage, line + half * 8, col);
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const float distance = k == 0 ? x.x - a.x : x.y - a.y;
            const float z = k == 0 ? distance * b.x + c.x : distance * b.y + c.y;
            const bool counts = !(launch.x_columns.relu && z <= 0);
            const float gradient = counts ? products[j * 4 + half * 2 + k] : 0.0f;
            values[i * 2 + k] += gradient;
            values[4 + i * 2 + k] = fmaf(gradient, distance, values[4 + i * 2 + k]);
          }
        }
      }
      totals_[set] += static_cast<double>(add_across_eight_lanes(values, lane));
    }
  }

  /// Writes those of a warp to `of_warp`, 2 x 64.
  __device__ void write(double* of_warp) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int which = lane / 4 % 4;
#pragma unroll
    for (int set = 0; set < 4; ++set) {
      of_warp[lane / 16 * 64 + (set * 2 + which / 2) * 8 + lane % 4 * 2 + which % 2] = totals_[set];
    }
  }

 private:
  double totals_[4] = {};
};

__device__ inline void write_normed_rows(const NormedLaunch& launch, std::int64_t first,
                                         const float (&products)[32]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row = first + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + half * 8 >= launch.rows) continue;
    float* const to = launch.grad_x.data + (row + half * 8) * launch.grad_x.stride;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int col = j * 8 + lane % 4 * 2;
      if (col >= launch.in) break;
      *reinterpret_cast<float2*>(to + col) =
          make_float2(products[j * 4 + half * 2], products[j * 4 + half * 2 + 1]);
    }
  }
}

__global__ __launch_bounds__(normed_threads,
                             1) void normed_gradient(const __grid_constant__ NormedLaunch launch) {
#if defined(TESSERA_HAS_WGMMA)
  extern __shared__ char shared[];
  const auto unaligned = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const std::uint32_t address = (unaligned + 1023) / 1024 * 1024;
  char* const memory = shared + (address - unaligned);
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / 128;
  const std::int64_t step = std::int64_t{gridDim.x} * normed_rows;
  const std::int64_t begin = std::int64_t{blockIdx.x} * normed_rows;
  NormedTiles tiles(launch, memory);
  cuda::begin_overlapped();
  tiles.keep_constants();
  for (int stage = 0; stage + 1 < normed_stages; ++stage) {
    if (begin + stage * step < launch.rows) tiles.copy(begin + stage * step, stage);
    cuda::commit_copies();
  }
  tiles.fetch_left(begin);

  float sums[32] = {};
  NormedSums of_x;
  int stage = 0;
  for (std::int64_t first = begin; first < launch.rows; first += step) {
    cuda::wait_for_copies<normed_stages - 2>();
    tiles.keep_left();
    __syncthreads();
    tiles.convert(first, stage);
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    const std::int64_t later = first + (normed_stages - 1) * step;
    if (later < launch.rows) tiles.copy(later, (stage + normed_stages - 1) % normed_stages);
    cuda::commit_copies();
    tiles.fetch_left(first + step);
    float products[32] = {};
    if (group < 2) {
      multiply_lines<64, 2>(address + NormedLayout::gradient_planes,
                            address + NormedLayout::x_planes, group, products);
      cuda::wgmma_wait();
      cuda::keep_in_place(products);
#pragma unroll
      for (int i = 0; i < 32; ++i) sums[i] += products[i];
    } else {
      multiply_by_weight(address, products);
      float rest = 0;
#pragma unroll
      for (int i = 0; i < 32; ++i) rest = fmaf(products[i], 0.0f, rest);
      if (rest != 0) {
        float copies[32];
#pragma unroll
        for (int i = 0; i < 32; ++i) copies[i] = products[i];
        const std::int64_t row = first + thread / 32 % 4 * 16 + thread % 32 / 4;
        for (int i = 0; i < 32; ++i) {
          const std::int64_t at_row = row + i / 2 % 2 * 8;
          const int col = i / 4 * 8 + thread % 4 * 2 + i % 2;
          if (isfinite(copies[i]) || at_row >= launch.rows || col >= launch.in) continue;
          copies[i] = plain_of_x(launch, at_row, col);
        }
#pragma unroll
        for (int i = 0; i < 32; ++i) products[i] = copies[i];
      }
      write_normed_rows(launch, first, products);
      if (launch.sums.data != nullptr) of_x.add(launch, tiles, stage, products, first);
    }
    stage = (stage + 1) % normed_stages;
  }
  cuda::wait_for_copies<0>();
  __syncthreads();

  // Both halves of the weight's gradient together; each of the first 256 threads has 16 numbers of
  // it then.
  constexpr int num_sums = 64 * 64 / product_threads;
  float* const of_weight = reinterpret_cast<float*>(memory + NormedLayout::stages);
  double* const of_warps =
      reinterpret_cast<double*>(memory + NormedLayout::stages + NormedLayout::matrix_bytes);
  if (group == 1) {
#pragma unroll
    for (int i = 0; i < 32; ++i) of_weight[i * 128 + thread % 128] = sums[i];
  }
  if (group == 2) of_x.write(of_warps + thread / 32 % 4 * 128);
  __syncthreads();
  if (group == 0) {
#pragma unroll
    for (int i = 0; i < 32; ++i) of_weight[i * 128 + thread] += sums[i];
  }
  if (launch.sums.data != nullptr && thread < 128) {
    double total = 0;
#pragma unroll
    for (int warp = 0; warp < 4; ++warp) total += of_warps[warp * 128 + thread];
    __stcg(launch.partial_sums + std::int64_t{blockIdx.x} * 128 + thread, total);
  }
  __syncthreads();
  float own[num_sums];
  const auto each = [&](auto&& visit) {
    if (thread >= product_threads) return;
#pragma unroll
    for (int i = 0; i < num_sums; ++i) {
      const int place = (i * product_threads + thread) % 128;
      const int number = (i * product_threads + thread) / 128;
      const int row = place / 32 * 16 + place % 32 / 4 + number / 2 % 2 * 8;
      const int col = number / 4 * 8 + place % 4 * 2 + number % 2;
      if (row < launch.out && col < launch.in) visit(row, col, own[i]);
    }
  };
#pragma unroll
  for (int i = 0; i < num_sums; ++i) {
    own[i] = thread < product_threads ? of_weight[i * product_threads + thread] : 0.0f;
  }
  each([&](int row, int col, float& sum) {
    if (!isfinite(sum)) sum = plain_of_weight(launch, row, col);
  });
  const TilePlace place{0, 0, 0, static_cast<int>(blockIdx.x)};
  if (!add_across_splits(launch.split, place, own)) return;
  each([&](int row, int col, float sum) {
    launch.grad_weight.data[row * launch.grad_weight.stride + col] = sum;
  });
  if (launch.sums.data == nullptr) return;
  double total = 0;
#pragma unroll 8
  for (int block = group; block < static_cast<int>(gridDim.x); block += normed_threads / 128) {
    total += __ldcg(launch.partial_sums + block * 128 + thread % 128);
  }
  of_warps[thread] = total;
  __syncthreads();
  if (thread >= 128 || thread % 64 >= launch.in) return;
  total = of_warps[thread] + of_warps[128 + thread] + of_warps[256 + thread];
  launch.sums.data[thread / 64 * launch.sums.stride + thread % 64] = total;
#endif
}

}  // namespace tessera::ops
