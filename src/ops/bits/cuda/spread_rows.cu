// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/aggregate.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 256;
constexpr int columns_of_lane = 16;

/// A thread makes 16 codes: half of a word of each plane.
__global__ void spread_rows_kernel(const BitRows from, std::int64_t width, std::uint8_t* to) {
  cuda::begin_overlapped();
  const std::int64_t units = width / columns_of_lane;
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
  *reinterpret_cast<uint4*>(to + row * width + unit * columns_of_lane) =
      make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

}  // namespace

void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream) {
  cuda::launch_overlapped(spread_rows_kernel,
                          cuda::num_blocks(from.rows * (width / columns_of_lane), threads), threads,
                          stream, from, width, to);
}

}  // namespace tessera::ops
