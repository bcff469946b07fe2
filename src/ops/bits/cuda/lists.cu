// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/bits/cuda/emit.cuh"
#include "ops/bits/cuda/list_sums.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 128;

/// A row for each team of lanes.
template <int lanes>
__global__ void __launch_bounds__(threads) sum_lists(const ByteListsLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (threads / lanes) + static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t column = std::int64_t{blockIdx.y} * (lanes * list_columns) +
                              static_cast<int>(threadIdx.x) % lanes * list_columns;
  std::int32_t totals[list_columns] = {};
  if (row < launch.out.rows && column < launch.out.cols) {
    const int begin = __ldg(launch.offsets + row);
    const int end = __ldg(launch.offsets + row + 1);
    const std::uint8_t* const codes =
        launch.codes + __ldg(launch.starts + row / 64) * launch.code_stride + column;
    add_sources(launch.sources + begin, end - begin, codes,
                static_cast<std::uint32_t>(launch.code_stride), totals);
  }
  __syncwarp();
  emit<lanes>(launch.out, row, column, row < launch.out.all_rows, totals);
}

template <int lanes>
void launch_lists(const ByteListsLaunch& launch, Stream stream) {
  const dim3 grid(cuda::num_blocks(launch.out.all_rows, threads / lanes),
                  cuda::num_blocks(launch.out.cols, lanes * list_columns));
  cuda::launch_overlapped(sum_lists<lanes>, grid, threads, stream, launch);
}

}  // namespace

void sum_byte_lists(const ByteListsLaunch& launch, Stream stream) {
  if (launch.out.cols <= 16) return launch_lists<1>(launch, stream);
  if (launch.out.cols <= 32) return launch_lists<2>(launch, stream);
  if (launch.out.cols <= 64) return launch_lists<4>(launch, stream);
  launch_lists<8>(launch, stream);
}

}  // namespace tessera::ops
