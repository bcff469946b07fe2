// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/spread_sum.cuh"
#include "ops/gemm/cuda/neighbours.cuh"
#include "ops/gemm/cuda/product_launch.hpp"

/// Products of very many short rows with a few columns: dot products, at the speed at which rows
/// come from memory. 16 lanes take four neighbours each of four rows at a time.
namespace tessera::ops {
namespace {

constexpr int dot_threads = 256;
constexpr int dot_lanes = 16;
constexpr int rows_at_once = 4;
constexpr int warp_rows = 32 / dot_lanes * rows_at_once;
static_assert(dot_lanes * 4 == longest_dot);

/// `slots`: columns of the right factor that there is room for. `whole`: rows are as long as they
/// may be, and four neighbours are loaded at once.
template <class T, int slots, bool whole>
__global__ __launch_bounds__(dot_threads) void dot_rows(
    const __grid_constant__ ProductLaunchOf<T> launch, bool inner_in_row) {
  const int lane = static_cast<int>(threadIdx.x) % dot_lanes;
  const int first_col = lane * 4;
  const int at_once = neighbours_at_once(launch.left);
  const std::int64_t left_here = launch.inner - first_col;
  const ReadColumns& reading = launch.left_columns;
  cuda::begin_overlapped();
  float factors[slots][4];
  cuda::ColumnNumbers numbers[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t k = first_col + i;
    const bool exists = k < launch.inner;
#pragma unroll
    for (int col = 0; col < slots; ++col) {
      const std::int64_t at =
          inner_in_row ? col * launch.right.stride + k : k * launch.right.stride + col;
      factors[col][i] = exists && col < launch.cols ? cuda::widen(launch.right.data[at]) : 0.0f;
    }
    numbers[i] =
        exists && reading.numbers != nullptr ? reading.numbers[k] : cuda::ColumnNumbers{0, 1, 0, 0};
  }
  const int warps = static_cast<int>(gridDim.x) * (dot_threads / 32);
  const int warp = static_cast<int>(blockIdx.x * (dot_threads / 32) + threadIdx.x / 32);
  const int team = static_cast<int>(threadIdx.x) % 32 / dot_lanes;
  for (std::int64_t of_warp = std::int64_t{warp} * warp_rows; of_warp < launch.rows;
       of_warp += std::int64_t{warps} * warp_rows) {
    const std::int64_t first = of_warp + team * rows_at_once;
    alignas(16) T values[rows_at_once][4];
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r) {
      const std::int64_t row = min(first + r, launch.rows - 1);
      load_neighbours(launch.left.data + row * launch.left.stride + first_col,
                      whole ? 4 : left_here, whole ? 4 : at_once, values[r]);
    }
    float sums[rows_at_once * slots] = {};
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float x = cuda::widen(values[r][i]);
        if (reading.numbers != nullptr) x = reading.value(x, numbers[i]);
#pragma unroll
        for (int col = 0; col < slots; ++col) {
          sums[r * slots + col] = fmaf(x, factors[col][i], sums[r * slots + col]);
        }
      }
    }
    const float sum = launch.alpha * cuda::spread_sum<dot_lanes>(sums, lane);
    constexpr int sharers = dot_lanes / (rows_at_once * slots);
    const std::int64_t row = first + lane / sharers / slots;
    const int col = lane / sharers % slots;
    if (lane % sharers != 0 || row >= launch.rows || col >= launch.cols) continue;
    const T* const bias = launch.target.bias;
    launch.target.data[row * launch.target.row_step + col] =
        cuda::narrow<T>(bias == nullptr ? sum : sum + cuda::widen(bias[col]));
  }
}

template <class T, int slots>
void run_slots(const ProductOf<T>& product, Stream stream) {
  // Rows do not depend on each other, so any number of blocks may do them.
  constexpr unsigned most_blocks = 2112;
  const unsigned blocks =
      std::min(cuda::num_blocks(product.rows, warp_rows * (dot_threads / 32)), most_blocks);
  const bool whole = product.inner == longest_dot && product.left.stride % 4 == 0 &&
                     reinterpret_cast<std::uintptr_t>(product.left.data) % (4 * sizeof(T)) == 0;
  cuda::launch_overlapped(whole ? dot_rows<T, slots, true> : dot_rows<T, slots, false>, blocks,
                          dot_threads, stream, product.launch(), product.right_in_row);
}

}  // namespace

template <class T>
void run_dot_rows(const ProductOf<T>& product, Stream stream) {
  const auto run_chosen = product.cols <= 2 ? run_slots<T, 2> : run_slots<T, 4>;
  run_chosen(product, stream);
}
template void run_dot_rows(const Product&, Stream);
template void run_dot_rows(const ProductOf<__nv_bfloat16>&, Stream);

}  // namespace tessera::ops
