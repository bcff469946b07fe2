// SPDX-License-Identifier: Apache-2.0
#include "cuda/together.cuh"
#include "ops/bits/cuda/chain/launch.hpp"
#include "ops/bits/cuda/chain/steps.cuh"
#include "ops/bits/cuda/emit.cuh"
#include "ops/bits/cuda/list_sums.cuh"

/// A block has one part of a batch: 128 vertices, the edges between them and all steps of a model.
/// Of parts of more vertices the edges come as lists of sources: a chain is cut before every sum,
/// and a launch has the steps up to the next one. Codes then go from launch to launch as bytes in
/// global memory, where lists find them, and stay on the chip within a launch.
namespace tessera::ops {
namespace {

/// Three blocks over lists share a processor, so that some gather while another multiplies.
constexpr int list_threads = 256;
template <bool lists>
constexpr int threads_of = lists ? list_threads : 512;

/// Codes of sums for the next step, or values. A thread has 16 columns of a row.
__device__ void finish_list(const ChainLaunch& launch, const chain::ChainMemory& memory, int row,
                            int column, const std::int32_t (&sums)[list_columns],
                            std::uint8_t* to) {
  const ChainStep& step = launch.steps[0];
  const BitFinish finish = chain::finish_of(launch, step, memory);
  // Columns behind the last are computed as the last.
  const auto column_of = [&](int i) { return min(column + i, step.out - 1); };
  float values[list_columns];
#pragma unroll
  for (int i = 0; i < list_columns; ++i) values[i] = static_cast<float>(sums[i]);
  finish_values(finish, finish.row(row), column_of, values);
  if (step.lower < 0) {
    const std::int64_t vertex = std::int64_t{blockIdx.x} * chain_rows + row;
    return store_numbers<list_columns>(launch.values + vertex * launch.stride + column,
                                       launch.stride, step.out - column, launch.values,
                                       [&](int i) { return values[i]; });
  }
  std::uint32_t codes[list_columns];
  finish_codes(finish, column_of, values, codes);
  std::uint32_t words[4];
  to_bytes(codes, words);
  *reinterpret_cast<uint4*>(to + row * chain_pitch(step.out) + column) =
      make_uint4(words[0], words[1], words[2], words[3]);
}

/// The codes of every vertex's sources, added.
__device__ void sum_lists(const ChainLaunch& launch, const chain::ChainMemory& memory,
                          std::uint8_t* to) {
  const int units = (launch.steps[0].out + list_columns - 1) / list_columns;
  for (int item = static_cast<int>(threadIdx.x); item < chain_rows * units; item += list_threads) {
    const int row = item / units;
    const int column = item % units * list_columns;
    const std::int64_t vertex = std::int64_t{blockIdx.x} * chain_rows + row;
    const int begin = __ldg(launch.list_offsets + vertex);
    const int end = __ldg(launch.list_offsets + vertex + 1);
    const std::int64_t start = __ldg(launch.block_starts + vertex / 64);
    std::int32_t sums[list_columns] = {};
    add_sources(launch.list_sources + begin, end - begin,
                launch.bytes_in + start * launch.bytes_in_stride + column,
                static_cast<std::uint32_t>(launch.bytes_in_stride), sums);
    finish_list(launch, memory, row, column, sums, to);
  }
}

/// Lines of rows, as they lie in shared memory.
__device__ void store_lines(const ChainLaunch& launch, int columns, const std::uint8_t* from) {
  const int units = (columns + 15) / 16;
  for (int item = static_cast<int>(threadIdx.x); item < chain_rows * units; item += list_threads) {
    const int row = item / units;
    const int unit = item % units;
    const std::int64_t vertex = std::int64_t{blockIdx.x} * chain_rows + row;
    *reinterpret_cast<uint4*>(launch.bytes_out + vertex * launch.bytes_out_stride + unit * 16) =
        *reinterpret_cast<const uint4*>(from + row * chain_pitch(columns) + unit * 16);
  }
}

template <bool lists>
__global__ __launch_bounds__(threads_of<lists>, lists ? 3 : 1) void bit_chain_kernel(
    const __grid_constant__ ChainLaunch launch) {
  extern __shared__ __align__(16) std::uint8_t shared[];
  const chain::ChainMemory memory(shared, launch.image_bytes);
  cuda::let_next_begin();
  chain::load_image(launch, memory);
  cuda::wait_for_previous();
  chain::load_vertices(launch, memory);
  const bool sums_lists = lists && launch.steps[0].weights < 0;
  if (!sums_lists) chain::load_features(launch, memory.codes[0]);
  cuda::wait_for_copies<0>();
  __syncthreads();
  for (int i = 0; i < launch.num_steps; ++i) {
    std::uint8_t* const to = memory.codes[(i + 1) % 2];
    if (i == 0 && sums_lists) {
      sum_lists(launch, memory, to);
    } else {
      chain::run_step<lists ? 4 : 8>(launch, launch.steps[i], memory, memory.codes[i % 2], to);
    }
    __syncthreads();
  }
  if (!lists || launch.bytes_out == nullptr) return;
  store_lines(launch, launch.steps[launch.num_steps - 1].out, memory.codes[launch.num_steps % 2]);
}

}  // namespace

int allow_chains(bool lists) {
  return cuda::take_shared_memory(lists ? bit_chain_kernel<true> : bit_chain_kernel<false>);
}

void launch_chain(const ChainLaunch& launch, bool lists, Stream stream) {
  cuda::launch_overlapped(lists ? bit_chain_kernel<true> : bit_chain_kernel<false>,
                          dim3(static_cast<unsigned>(launch.num_parts)),
                          static_cast<unsigned>(lists ? threads_of<true> : threads_of<false>),
                          static_cast<std::size_t>(chain_shared_bytes(launch.image_bytes)), stream,
                          launch);
}

}  // namespace tessera::ops
