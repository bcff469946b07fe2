// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/aggregate.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 256;

/// A thread makes 16 codes: half of a word of each plane.
__global__ void spread_rows_kernel(const BitRows from, std::int64_t width, std::uint8_t* to) {
  cuda::begin_overlapped();
  const std::int64_t units = width / 16;
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= from.rows * units) return;
  const std::int64_t row = i / units;
  const std::int64_t unit = i % units;
  std::uint32_t bytes[4] = {};
  for (int plane = 0; plane < from.planes; ++plane) {
    const std::uint32_t bits =
        from.words[plane * from.plane_words + row * from.row_words + unit / 2] >> (unit % 2 * 16);
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      // Four bits to the lowest places of four bytes.
      const std::uint32_t four = bits >> (word * 4) & 15u;
      bytes[word] |= (four * 0x00204081u & 0x01010101u) << plane;
    }
  }
  *reinterpret_cast<uint4*>(to + row * width + unit * 16) =
      make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

__global__ void clear_rows_kernel(const AggregateLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t row = launch.shared_rows[blockIdx.x];
  for (std::int64_t j = threadIdx.x; j < launch.cols; j += threads) {
    launch.sums[row * launch.stride + j] = 0;
  }
}

/// A warp has one piece and up to 512 columns at a time, 16 to a lane; where these are fewer lanes
/// than a warp, groups of lanes take different sources. Sums of bytes grow in halves of 16 bits,
/// which 256 of them cannot fill.
template <int lanes>
__global__ void aggregate_rows_kernel(const AggregateLaunch launch) {
  cuda::begin_overlapped();
  constexpr int groups = 32 / lanes;
  const std::int64_t warp = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (warp >= launch.num_pieces) return;
  const RowPiece piece = launch.pieces[warp];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / lanes;
  const std::int64_t first = std::int64_t{blockIdx.y} * 512 + lane % lanes * 16;
  const bool exists = first < launch.width;
  std::int32_t sums[16] = {};
  for (std::int32_t begin = 0; begin < piece.count; begin += 256 * groups) {
    const std::int32_t end = min(piece.count, begin + 256 * groups);
    std::uint32_t even[4] = {};
    std::uint32_t odd[4] = {};
#pragma unroll 4
    for (std::int32_t e = begin + group; e < end; e += groups) {
      const std::int64_t source = launch.sources[piece.begin + e];
      uint4 codes = make_uint4(0, 0, 0, 0);
      if (exists) {
        codes = __ldg(reinterpret_cast<const uint4*>(launch.codes + source * launch.width + first));
      }
      const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        even[w] += words[w] & 0x00FF00FFu;
        odd[w] += words[w] >> 8 & 0x00FF00FFu;
      }
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      sums[w * 4] += static_cast<std::int32_t>(even[w] & 0xFFFFu);
      sums[w * 4 + 1] += static_cast<std::int32_t>(odd[w] & 0xFFFFu);
      sums[w * 4 + 2] += static_cast<std::int32_t>(even[w] >> 16);
      sums[w * 4 + 3] += static_cast<std::int32_t>(odd[w] >> 16);
    }
  }
#pragma unroll
  for (int distance = lanes; distance < 32; distance *= 2) {
#pragma unroll
    for (std::int32_t& sum : sums) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  }
  if (group != 0) return;
  std::int32_t* to = launch.sums + piece.row * launch.stride + first;
  if (warp >= launch.num_whole) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (first + i < launch.cols) atomicAdd(to + i, sums[i]);
    }
    return;
  }
  const bool aligned =
      launch.stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(launch.sums) % 16 == 0;
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    if (aligned && first + i + 4 <= launch.cols) {
      *reinterpret_cast<int4*>(to + i) = make_int4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (first + i + k < launch.cols) to[i + k] = sums[i + k];
      }
    }
  }
}

using Kernel = void (*)(const AggregateLaunch);

Kernel kernel_for(std::int64_t width) {
  if (width <= 16) return aggregate_rows_kernel<1>;
  if (width <= 32) return aggregate_rows_kernel<2>;
  if (width <= 64) return aggregate_rows_kernel<4>;
  if (width <= 128) return aggregate_rows_kernel<8>;
  if (width <= 256) return aggregate_rows_kernel<16>;
  return aggregate_rows_kernel<32>;
}

}  // namespace

void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream) {
  cuda::launch_overlapped(spread_rows_kernel, cuda::num_blocks(from.rows * (width / 16), threads),
                          threads, stream, from, width, to);
}

void aggregate_rows(const AggregateLaunch& launch, Stream stream) {
  if (launch.cols == 0) return;
  cuda::launch_overlapped(clear_rows_kernel, cuda::num_blocks(launch.num_shared_rows, 1), threads,
                          stream, launch);
  const dim3 grid(cuda::num_blocks(launch.num_pieces * 32, threads),
                  cuda::num_blocks(launch.width, 512));
  cuda::launch_overlapped(kernel_for(launch.width), grid, threads, stream, launch);
}

}  // namespace tessera::ops
