// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/share_registers.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/gemm/cuda/normed_plain.cuh"
#include "ops/gemm/cuda/normed_sums.cuh"

/// Both gradients of a dense layer before a batch norm, whose own gradient is made where it is
/// read: x, y and the gradient come from memory once, that of x goes there once.
///
///     groups 0, 1    convert tile 2  | convert tile 3  | convert tile 4        ...
///     group 2        dY^T X and dY W of tile 0, write rows | of tile 2         ...
///     group 3                          dY^T X and dY W of tile 1, write rows   ...
///     copies         two tiles are on their way all the time
namespace tessera::ops {

/// D[64][64] += A[64][16] B[16][64], both in shared memory in lines of 64 numbers: those of A are
/// its rows, those of B one of the 16 each. Without `adds` what was in `d` is forgotten.
__device__ inline void wgmma_lines(float (&d)[32], std::uint64_t a, std::uint64_t b, int adds) {
#if defined(TESSERA_HAS_WGMMA)
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" TESSERA_PLACES_32
      "}, %32, %33, p, 1, 1, 0, 1;\n}"
      : TESSERA_SUMS_32(d, 0)
      : "l"(a), "l"(b), "r"(adds));
#endif
}

/// Begins the product of a tile of gradients with the weight, 16 rows of it for a warp.
__device__ inline void multiply_by_weight(std::uint32_t gradients, std::uint32_t weight,
                                          float (&products)[32]) {
  constexpr int pairs[6][2] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
  constexpr std::uint64_t plane_step = inner_plane_bytes >> 4;
  const std::uint64_t left = cuda::RowLayout<128>::descriptor(gradients);
  const std::uint64_t right = cuda::wgmma_descriptor(weight, 0);
  int adds = 0;
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (const auto& [p, q] : pairs) {
      wgmma_lines(products, left + step * cuda::row_step + p * plane_step,
                  right + step * cuda::wgmma_step + q * plane_step, adds);
      adds = 1;
    }
  }
  cuda::wgmma_commit();
}

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

/// Computes again what planes could not hold.
__device__ inline void make_sure_of_x(const NormedLaunch& launch, std::int64_t first,
                                      float (&products)[32]) {
  float rests[4] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) rests[i % 4] = fmaf(products[i], 0.0f, rests[i % 4]);
  if (rests[0] + rests[1] + (rests[2] + rests[3]) == 0) return;
  float copies[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) copies[i] = products[i];
  find_plain_x(launch, first, copies);
#pragma unroll
  for (int i = 0; i < 32; ++i) products[i] = copies[i];
}

/// Brings the rows of a block's tiles and makes planes of them, as far ahead as there is room.
template <class Tiles>
__device__ void convert_tiles(const NormedLaunch& launch, Tiles& tiles, std::int64_t begin,
                              std::int64_t step) {
  const auto meet = [] { cuda::wait_at_barrier(NormedBarriers::of_converters, normed_converters); };
  const bool copies = threadIdx.x == 0;
  for (int side = 0; side < 2; ++side) {
    if (copies && begin + side * step < launch.rows) tiles.copy(begin + side * step, side);
  }
  tiles.fetch_left(begin);
  tiles.keep_left(0);
  meet();
  int done = 0;
  for (std::int64_t first = begin; first < launch.rows; first += step, ++done) {
    const int side = done % 2;
    tiles.fetch_left(first + step);
    tiles.wait_for_rows(side, done / 2);
    if (done >= 2) {
      cuda::wait_at_barrier(NormedBarriers::empty(side), NormedBarriers::threads_of_side);
    }
    tiles.convert(first, side);
    cuda::fence_shared_for_wgmma();
    cuda::arrive_at_barrier(NormedBarriers::full(side), NormedBarriers::threads_of_side);
    tiles.keep_left(1 - side);
    // All have read the stage that the next but one comes to.
    meet();
    if (copies && first + 2 * step < launch.rows) tiles.copy(first + 2 * step, side);
  }
  for (int last = max(0, done - 2); last < done; ++last) {
    cuda::wait_at_barrier(NormedBarriers::empty(last % 2), NormedBarriers::threads_of_side);
  }
}

/// What a group has found of its tiles.
struct NormedResults {
  float of_weight[32] = {};
  NormedSums of_x;
};

/// For one of the two groups that multiply, which has the tiles of one side.
template <class Tiles>
__device__ void multiply_tiles(const NormedLaunch& launch, const Tiles& tiles,
                               std::uint32_t address, int side, NormedResults& results) {
  const bool has_sums = Tiles::may_have_sums && launch.sums.data != nullptr;
  const std::int64_t step = std::int64_t{gridDim.x} * normed_rows;
  const std::uint32_t gradients = address + NormedLayout::gradient_planes(side);
  for (std::int64_t first = (blockIdx.x + std::int64_t{gridDim.x} * side) * normed_rows;
       first < launch.rows; first += 2 * step) {
    cuda::wait_at_barrier(NormedBarriers::full(side), NormedBarriers::threads_of_side);
    float products[32];
    multiply_lines<64, 1>(gradients, address + NormedLayout::x_planes(side), 0, products);
    cuda::wgmma_wait();
    cuda::keep_in_place(products);
#pragma unroll
    for (int i = 0; i < 32; ++i) results.of_weight[i] += products[i];
    multiply_by_weight(gradients, address + NormedLayout::weight_planes, products);
    float x[32];
    if (has_sums) NormedSums::fetch(launch, first, x);
    cuda::wgmma_wait();
    cuda::keep_in_place(products);
    cuda::arrive_at_barrier(NormedBarriers::empty(side), NormedBarriers::threads_of_side);
    make_sure_of_x(launch, first, products);
    write_normed_rows(launch, first, products);
    if (has_sums) results.of_x.add(launch, tiles, x, products, first);
  }
}

template <bool reads_columns, bool factors>
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
  NormedTiles<reads_columns, factors> tiles(launch, memory);
  cuda::begin_overlapped();
  tiles.keep_constants();
  cuda::fence_shared_for_wgmma();
  __syncthreads();

  // Where rows were staged there is room once all of them are in planes.
  float* const of_weight = reinterpret_cast<float*>(memory + NormedLayout::stages);
  double* const of_warps =
      reinterpret_cast<double*>(memory + NormedLayout::stages + 2 * NormedLayout::matrix_bytes);
  if (thread < normed_converters) {
    cuda::give_registers<96>();
    convert_tiles(launch, tiles, begin, step);
    cuda::arrive_at_barrier(NormedBarriers::converted, normed_threads);
    cuda::take_registers<128>();
  } else {
    cuda::take_registers<160>();
    NormedResults results;
    multiply_tiles(launch, tiles, address, group - 2, results);
    // Rows that others have yet to convert may lie there.
    cuda::wait_at_barrier(NormedBarriers::converted, normed_threads);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      of_weight[(group - 2) * 64 * 64 + i * 128 + thread % 128] = results.of_weight[i];
    }
    results.of_x.write(of_warps + (thread - normed_converters) / 32 * 128);
    cuda::give_registers<128>();
  }
  __syncthreads();
  if (launch.sums.data != nullptr && thread < 128) {
    double total = 0;
#pragma unroll
    for (int warp = 0; warp < 8; ++warp) total += of_warps[warp * 128 + thread];
    __stcg(launch.partial_sums + std::int64_t{blockIdx.x} * 128 + thread, total);
  }
  // Each of the first 256 threads has 16 numbers of the weight's gradient.
  constexpr int num_sums = 64 * 64 / product_threads;
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
    const int at = i * product_threads + thread;
    own[i] = thread < product_threads ? of_weight[at] + of_weight[64 * 64 + at] : 0.0f;
  }
  each([&](int row, int col, float& sum) {
    if (!isfinite(sum)) sum = plain_of_weight<normed_rows>(launch, row, col);
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
  total = of_warps[thread] + of_warps[128 + thread];
  total += of_warps[256 + thread] + of_warps[384 + thread];
  launch.sums.data[thread / 64 * launch.sums.stride + thread % 64] = total;
#endif
}

}  // namespace tessera::ops
