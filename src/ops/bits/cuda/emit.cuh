// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/finish_many.hpp"

/// What becomes of sums of neighbouring columns, which a lane has.
namespace tessera::ops {

/// Stores numbers, four at a time where they lie on a boundary.
template <int count, class T, class NumberOf>
__device__ void store_numbers(T* to, std::int64_t stride, std::int64_t left, const void* base,
                              NumberOf&& number_of) {
  using Four = std::conditional_t<std::is_same_v<T, float>, float4, int4>;
  if constexpr (count % 4 == 0) {
    if (stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && left >= count) {
#pragma unroll
      for (int i = 0; i < count; i += 4) {
        *reinterpret_cast<Four*>(to + i) =
            Four{number_of(i), number_of(i + 1), number_of(i + 2), number_of(i + 3)};
      }
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (i < left) to[i] = number_of(i);
  }
}

/// The sums with the codes of the target itself.
template <int count>
__device__ void add_own_codes(const BitFinish& finish, std::int64_t row, std::int64_t column,
                              std::int64_t left, float (&values)[count]) {
  if (count % 4 != 0 || finish.own_codes.bytes == nullptr) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i < left) values[i] = finish.with_own(row, column + i, values[i]);
    }
    return;
  }
  const auto* const words = reinterpret_cast<const std::uint32_t*>(
      finish.own_codes.bytes + row * finish.own_codes.stride + column);
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    const std::uint32_t four = i < left ? __ldg(words + i / 4) : 0;
#pragma unroll
    for (int k = i; k < i + 4 && k < count; ++k) {
      values[k] = fmaf(finish.own, static_cast<float>(four >> (k - i) * 8 & 255u), values[k]);
    }
  }
}

/// Stores sums, whole numbers of either type, and values; codes of up to 8 bits are left in the
/// lowest bytes of `codes`, 0 behind the last column. `left` of the columns exist, none where the
/// row does not.
template <class Sum, int count>
__device__ void finish_sums(const BitResult& result, std::int64_t row, std::int64_t column,
                            std::int64_t left, const Sum (&sums)[count],
                            std::uint32_t (&codes)[count]) {
#pragma unroll
  for (std::uint32_t& code : codes) code = 0;
  if (left <= 0) return;
  if (result.kind == BitResultKind::sums) {
    store_numbers<count>(result.sums + row * result.stride + column, result.stride, left,
                         result.sums, [&](int i) { return static_cast<std::int32_t>(sums[i]); });
    return;
  }
  const BitFinish& finish = result.finish;
  // Columns behind the last are computed as the last and left out.
  const int last = left < count ? static_cast<int>(left) - 1 : count - 1;
  const auto column_of = [&](int i) { return column + (i < last ? i : last); };
  float values[count];
#pragma unroll
  for (int i = 0; i < count; ++i) values[i] = static_cast<float>(sums[i]);
  if (finish.own != 0) add_own_codes(finish, row, column, left, values);
  finish_values(finish, finish.row(row), column_of, values);
  if (result.kind == BitResultKind::values) {
    store_numbers<count>(result.values + row * result.stride + column, result.stride, left,
                         result.values, [&](int i) { return values[i]; });
    return;
  }
  finish_codes(finish, column_of, values, codes);
  if (left >= count) return;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (i > last) codes[i] = 0;
  }
}

/// Whether `finish_sums` leaves codes for `store_codes`.
__device__ inline bool gives_codes(const BitResult& result) {
  return result.kind == BitResultKind::rows || result.kind == BitResultKind::bytes;
}

/// Bit `plane` of bytes, one after the other.
template <int words>
__device__ std::uint32_t plane_of(const std::uint32_t (&bytes)[words], int plane) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int word = 0; word < words; ++word) {
    const std::uint32_t four = bytes[word] >> plane & 0x01010101u;
    bits |= (four * 0x01020408u >> 24) << (word * 4);
  }
  return bits;
}

/// Words of all planes, which several lanes have parts of. The last columns also clear what fills a
/// row up. A block has so many columns.
template <int lanes, int words, int block_columns>
__device__ void store_planes(const PackedCodes& to, std::int64_t row, std::int64_t column,
                             bool takes, const std::uint32_t (&bytes)[words]) {
  constexpr int columns = words * 4;  // of a lane
  constexpr int sharing = 32 / columns;
  constexpr int block_words = (block_columns + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t word = column / 32;
  const bool last = blockIdx.y + 1 == gridDim.y;
  const std::int64_t behind = (std::int64_t{blockIdx.y} + 1) * block_words;
  for (int plane = 0; plane < to.bits; ++plane) {
    std::uint32_t bits = plane_of(bytes, plane);
#pragma unroll
    for (int distance = 1; distance < sharing && distance < lanes; distance *= 2) {
      bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, distance) << (distance * columns);
    }
    if (!takes) continue;
    std::uint32_t* const at = to.words + (plane * to.padded_rows + row) * to.words_per_row;
    if (lane % sharing == 0 && word < to.words_per_row) at[word] = bits;
    if (!last) continue;
    for (std::int64_t w = behind + lane; w < to.words_per_row; w += lanes) at[w] = 0;
  }
}

/// Codes as bytes, where a row that exists has these columns.
template <int words>
__device__ void store_bytes(const AggregateResult& out, std::int64_t row, std::int64_t column,
                            const std::uint32_t (&bytes)[words]) {
  if (row >= out.rows || column >= (out.cols + 15) / 16 * 16) return;
  std::uint8_t* const to = out.result.bytes + row * out.result.stride + column;
  if constexpr (words == 4) {
    *reinterpret_cast<uint4*>(to) = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
  } else {
    static_assert(words == 2);
    *reinterpret_cast<uint2*>(to) = make_uint2(bytes[0], bytes[1]);
  }
}

/// Codes of `lanes` lanes with a few words of bytes each, from `column` on. All lanes of a warp
/// call it; those that `take` have a row, behind the last one with codes of 0.
template <int lanes, int words, int block_columns = lanes* words * 4>
__device__ void store_codes(const AggregateResult& out, std::int64_t row, std::int64_t column,
                            bool takes, const std::uint32_t (&bytes)[words]) {
  if (out.result.kind == BitResultKind::rows) {
    store_planes<lanes, words, block_columns>(out.result.codes, row, column, takes, bytes);
  } else if (takes) {
    store_bytes(out, row, column, bytes);
  }
}

/// The lowest bytes of four codes.
__device__ inline std::uint32_t bytes_of(std::uint32_t first, std::uint32_t second,
                                         std::uint32_t third, std::uint32_t fourth) {
  return __byte_perm(__byte_perm(first, second, 0x0040), __byte_perm(third, fourth, 0x0040),
                     0x5410);
}
/// Those of all codes.
template <int count>
__device__ void to_bytes(const std::uint32_t (&codes)[count], std::uint32_t (&bytes)[count / 4]) {
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    bytes[i / 4] = bytes_of(codes[i], codes[i + 1], codes[i + 2], codes[i + 3]);
  }
}

/// A code of a sum that nothing else is done to; only its lowest byte counts.
template <bool direct>
__device__ std::uint32_t plain_code(const PlainRange& range, float sum) {
  if constexpr (direct) return direct_code(range.last_code, sum, range.inverse);
  return code_within<false, true, true>(range.last_code, sum, 0.0f, range.step, range.inverse);
}
template <bool direct>
__device__ std::uint32_t plain_code(const BitFinish& finish, float sum) {
  return plain_code<direct>(plain_range(finish), sum);
}

/// Bytes of such sums of neighbouring columns, the first of which is a multiple of `count`.
template <int count>
__device__ void store_plain(const PlainBytes& out, std::uint32_t row, int column,
                            const float (&sums)[count]) {
  if (column >= out.width) return;
  std::uint32_t codes[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    codes[i] =
        out.direct ? plain_code<true>(out.range, sums[i]) : plain_code<false>(out.range, sums[i]);
  }
  if (column + count > out.cols) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (column + i >= out.cols) codes[i] = 0;
    }
  }
  std::uint8_t* const to = out.bytes + std::uint64_t{row} * out.stride + column;
  if constexpr (count == 1) {
    *to = static_cast<std::uint8_t>(codes[0]);
  } else if constexpr (count == 2) {
    *reinterpret_cast<std::uint16_t*>(to) =
        static_cast<std::uint16_t>(__byte_perm(codes[0], codes[1], 0x0040));
  } else {
    std::uint32_t words[count / 4];
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      words[i / 4] = bytes_of(codes[i], codes[i + 1], codes[i + 2], codes[i + 3]);
    }
    if constexpr (count == 4) *reinterpret_cast<std::uint32_t*>(to) = words[0];
    if constexpr (count == 8) *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    if constexpr (count == 16) {
      *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

/// The sums of `count` columns. All lanes of a warp call it; those that `take` have a row.
template <int lanes, class Sum, int count>
__device__ void emit(const AggregateResult& out, std::int64_t row, std::int64_t column, bool takes,
                     const Sum (&sums)[count]) {
  const std::int64_t left = takes && row < out.rows ? out.cols - column : 0;
  std::uint32_t codes[count];
  finish_sums(out.result, row, column, left, sums, codes);
  if (!gives_codes(out.result)) return;
  std::uint32_t bytes[count / 4];
  to_bytes(codes, bytes);
  store_codes<lanes>(out, row, column, takes, bytes);
}

}  // namespace tessera::ops
