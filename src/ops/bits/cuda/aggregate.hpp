// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "ops/bits/cuda/launch.hpp"

namespace tessera::ops {

/// One range from 0 on.
struct PlainRange {
  float last_code = 0;
  float step = 1;
  float inverse = 0;
};

/// What becomes of the sums of a target's codes.
struct AggregateResult {
  std::int64_t rows = 0;
  std::int64_t all_rows = 0;  ///< with those that fill a tensor of codes up
  std::int64_t cols = 0;
  BitResult result;
  /// Sums become bytes in one range from 0 on (`is_plain`).
  bool plain = false;
};

/// Whether sums become bytes in one range from 0 on, by quick quotients or directly, and nothing
/// else is done to them: code of its own makes these.
inline bool is_plain(const BitResult& result) {
  const BitFinish& finish = result.finish;
  return result.kind == BitResultKind::bytes && finish.range_stride == 0 &&
         (finish.quick || finish.direct) && !finish.floors && finish.positive &&
         finish.keeps_sums();
}

/// What is needed for plain sums: of a small kernel all of it comes with its first loads.
struct PlainBytes {
  std::uint8_t* bytes = nullptr;
  std::uint32_t stride = 0;
  std::int32_t cols = 0;
  std::int32_t width = 0;  ///< the columns, filled up to a multiple of 16, with codes of 0
  bool direct = false;     ///< `rounds_directly`
  PlainRange range;
};

constexpr PlainRange plain_range(const BitFinish& finish) {
  return {finish.last_code, finish.one_range.step, finish.one_inverse};
}

/// Codes of a byte, summed over lists of sources.
struct ByteListsLaunch {
  const std::int32_t* offsets = nullptr;   ///< of every row's sources, and one more
  const std::uint16_t* sources = nullptr;  ///< counted from the start of a row's block
  const std::int32_t* starts = nullptr;    ///< of the block of every 64 rows
  const std::uint8_t* codes = nullptr;     ///< rows that begin at multiples of 16 bytes
  std::int64_t code_stride = 0;
  AggregateResult out;
};
void sum_byte_lists(const ByteListsLaunch& launch, Stream stream);

/// The codes of each row's sources, two bytes each, added to 32-bit sums.
struct WideLaunch {
  cuda::Offsets offsets;
  const VertexId* sources = nullptr;
  std::int64_t rows = 0;
  const std::uint16_t* codes = nullptr;  ///< rows of `width`
  std::int64_t cols = 0;
  std::int64_t width = 0;  ///< `cols` filled up to a multiple of 8
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;
};
void aggregate_wide(const WideLaunch& launch, Stream stream);

/// Codes of each row's planes, `width` of them, as bytes or as numbers of 16 bits; 16 bytes at
/// once.
template <class Code>
void spread_rows(const BitRows& from, std::int64_t width, Code* to, Stream stream);

}  // namespace tessera::ops
