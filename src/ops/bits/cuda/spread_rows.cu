// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/bits/cuda/aggregate.hpp"

namespace tessera::ops {
namespace {

constexpr int threads = 256;
/// A thread writes 16 bytes.
template <class Code>
constexpr int codes_at_once = 16 / sizeof(Code);

/// The first bits to the lowest places of a word's codes, four bytes or two numbers of 16 bits.
template <class Code>
__device__ std::uint32_t spread_bits(std::uint32_t bits) {
  if constexpr (sizeof(Code) == 1) return (bits & 15u) * 0x00204081u & 0x01010101u;
  return (bits & 1u) | (bits & 2u) << 15;
}

template <class Code>
__global__ void spread_rows_kernel(const BitRows from, std::int64_t width, Code* to) {
  cuda::begin_overlapped();
  constexpr int count = codes_at_once<Code>, units_of_word = 32 / count;
  const std::int64_t units = width / count;
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= from.rows * units) return;
  const std::int64_t row = i / units;
  const std::int64_t unit = i % units;
  std::uint32_t words[4] = {};
  for (int plane = 0; plane < from.planes; ++plane) {
    const std::uint32_t bits =
        from.words[plane * from.plane_words + row * from.row_words + unit / units_of_word] >>
        (unit % units_of_word * count);
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] |= spread_bits<Code>(bits >> (word * (count / 4))) << plane;
    }
  }
  *reinterpret_cast<uint4*>(to + row * width + unit * count) =
      make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace

template <class Code>
void spread_rows(const BitRows& from, std::int64_t width, Code* to, Stream stream) {
  cuda::launch_overlapped(spread_rows_kernel<Code>,
                          cuda::num_blocks(from.rows * (width / codes_at_once<Code>), threads),
                          threads, stream, from, width, to);
}

template void spread_rows(const BitRows&, std::int64_t, std::uint8_t*, Stream);
template void spread_rows(const BitRows&, std::int64_t, std::uint16_t*, Stream);

}  // namespace tessera::ops
