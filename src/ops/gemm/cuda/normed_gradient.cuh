// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/share_registers.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/gemm/cuda/normed_tiles.cuh"
#include "ops/gemm/cuda/stream_moments.cuh"

/// Both gradients of a dense layer before a batch norm, whose own gradient is made where it is
/// read: x, y and the gradient come from memory once, that of x goes there once.
///
///     groups 0, 1    convert tile 2  | convert tile 3  | convert tile 4        ...
///     group 2        dY^T X and dY W of tile 0, write rows | of tile 2         ...
///     group 3                          dY^T X and dY W of tile 1, write rows   ...
///     copies         two tiles are in flight all the time
namespace tessera::ops {

/// Begins the product of a tile of gradients with the weight, 16 rows of it for a warp.
__device__ inline void multiply_by_weight(std::uint32_t gradients, std::uint32_t weight,
                                          float (&products)[32]) {
  constexpr std::uint64_t plane_step = inner_plane_bytes >> 4;
  const std::uint64_t left = cuda::RowLayout<128>::descriptor(gradients);
  const std::uint64_t right = cuda::wgmma_descriptor(weight, 0);
  int adds = 0;
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    each_plane_pair([&](int p, int q) {
      wgmma_across<64, 0>(products, left + step * cuda::row_step + p * plane_step,
                          right + step * cuda::wgmma_step + q * plane_step, adds);
      adds = 1;
    });
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

/// What the gradient of a batch norm before the layer begins with, found where the gradient of the
/// layer's input is written: sums of 16 columns for a lane's four lanes, added up over
/// the rows of a warp in fp32, over tiles in double.
class NormedSums {
 public:
  /// Begins to read what a lane needs of x, as it is in memory; the tile came from there before.
  __device__ static void fetch(const NormedLaunch& launch, std::int64_t first, float (&x)[32]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t row = first + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int col = j * 8 + lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const bool exists = row + half * 8 < launch.rows && col < launch.in;
        const float* const place = launch.x.data + (row + half * 8) * launch.x.stride + col;
        const float2 both = exists ? *reinterpret_cast<const float2*>(place) : make_float2(0, 0);
        x[j * 4 + half * 2] = both.x;
        x[j * 4 + half * 2 + 1] = both.y;
      }
    }
  }

  /// `x` lies as products do.
  template <class Tiles>
  __device__ void add(const NormedLaunch& launch, const Tiles& tiles, const float (&x)[32],
                      const float (&products)[32], std::int64_t first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int line = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
    const bool exist[2] = {first + line < launch.rows, first + line + 8 < launch.rows};
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
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const float distance = x[j * 4 + half * 2 + k] - (k == 0 ? a.x : a.y);
            const float z = k == 0 ? distance * b.x + c.x : distance * b.y + c.y;
            const bool counts = exist[half] && !(launch.x_columns.relu && z <= 0);
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
  const auto [address, memory] = cuda::AlignedShared(shared);
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
#pragma unroll
  for (int i = 0; i < num_sums; ++i) {
    const int at = i * product_threads + thread;
    own[i] = thread < product_threads ? of_weight[at] + of_weight[64 * 64 + at] : 0.0f;
  }
  const auto place_of = [](int number) {
    const int place = number % 128, sum = number / 128;
    return make_int2(place / 32 * 16 + place % 32 / 4 + sum / 2 % 2 * 8,
                     sum / 4 * 8 + place % 4 * 2 + sum % 2);
  };
  if (!finish_weight<normed_rows>(launch, own, place_of)) return;
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
