// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/finish_many.hpp"

/// What becomes of 16 sums that a lane has, of neighbouring columns.
namespace tessera::ops {

/// Stores numbers, four at a time where they lie on a boundary.
template <class T, class Four, class NumberOf>
__device__ void store_numbers(T* to, std::int64_t stride, std::int64_t left, const void* base,
                              NumberOf&& number_of) {
  const bool aligned = stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(base) % 16 == 0;
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    if (aligned && i + 4 <= left) {
      *reinterpret_cast<Four*>(to + i) =
          Four{number_of(i), number_of(i + 1), number_of(i + 2), number_of(i + 3)};
      continue;
    }
#pragma unroll
    for (int k = i; k < i + 4; ++k) {
      if (k < left) to[k] = number_of(k);
    }
  }
}

/// Bit `plane` of 16 bytes as 16 bits.
__device__ inline std::uint32_t plane_of(const std::uint32_t (&bytes)[4], int plane) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    const std::uint32_t four = bytes[word] >> plane & 0x01010101u;
    bits |= (four * 0x01020408u >> 24) << (word * 4);
  }
  return bits;
}

/// Words of all planes: two lanes have the halves of one. The last columns also clear what fills a
/// row up.
template <int lanes>
__device__ void store_planes(const PackedCodes& to, std::int64_t row, std::int64_t column,
                             bool takes, const std::uint32_t (&bytes)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t word = column / 32;
  const bool last = blockIdx.y + 1 == gridDim.y;
  const std::int64_t behind = std::int64_t{blockIdx.y} * 16 + (lanes + 1) / 2;
  for (int plane = 0; plane < to.bits; ++plane) {
    std::uint32_t bits = plane_of(bytes, plane);
    if constexpr (lanes > 1) bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 1) << 16;
    if (!takes) continue;
    std::uint32_t* const words = to.words + (plane * to.padded_rows + row) * to.words_per_row;
    if (lane % 2 == 0 && word < to.words_per_row) words[word] = bits;
    if (!last) continue;
    for (std::int64_t w = behind + lane; w < to.words_per_row; w += lanes) words[w] = 0;
  }
}

/// The sums with the codes of the target itself.
__device__ inline void add_own_codes(const BitFinish& finish, std::int64_t row, std::int64_t column,
                                     std::int64_t left, float (&values)[16]) {
  if (finish.own_bytes == nullptr) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (i < left) values[i] = finish.with_own(row, column + i, values[i]);
    }
    return;
  }
  const uint4 loaded =
      __ldg(reinterpret_cast<const uint4*>(finish.own_bytes + row * finish.own_stride + column));
  const std::uint32_t words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t code = words[i / 4] >> (i % 4 * 8) & 255u;
    values[i] = fmaf(finish.own, static_cast<float>(code), values[i]);
  }
}

/// All lanes of a warp call it; those that `take` have a row. Rows behind the last have code 0.
template <int lanes>
__device__ void emit(const AggregateLaunch& launch, std::int64_t row, std::int64_t column,
                     bool takes, const std::int32_t (&sums)[16]) {
  const BitResult& result = launch.result;
  const BitFinish& finish = result.finish;
  const std::int64_t left = takes && row < launch.rows ? launch.cols - column : 0;
  if (result.kind == BitResultKind::sums) {
    if (left <= 0) return;
    store_numbers<std::int32_t, int4>(result.sums + row * result.stride + column, result.stride,
                                      left, result.sums, [&](int i) { return sums[i]; });
    return;
  }
  // Columns behind the last are computed as the last and left out.
  const auto column_of = [&](int i) { return i < left ? column + i : launch.cols - 1; };
  float values[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(sums[i]);
  if (left > 0) {
    if (finish.own != 0) add_own_codes(finish, row, column, left, values);
    finish_values(finish, finish.row(row), column_of, values);
  }
  if (result.kind == BitResultKind::values) {
    if (left <= 0) return;
    store_numbers<float, float4>(result.values + row * result.stride + column, result.stride, left,
                                 result.values, [&](int i) { return values[i]; });
    return;
  }
  std::uint32_t bytes[4] = {};
  if (left > 0) {
    std::uint32_t codes[16];
    finish_codes(finish, column_of, values, codes);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (i < left) bytes[i / 4] |= codes[i] << (i % 4 * 8);
    }
  }
  if (result.kind == BitResultKind::rows) {
    store_planes<lanes>(result.codes, row, column, takes, bytes);
  } else if (left > 0) {
    *reinterpret_cast<uint4*>(result.bytes + row * result.stride + column) =
        make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
  }
}

}  // namespace tessera::ops
