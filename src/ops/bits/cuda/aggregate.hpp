// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/finish_sums.hpp"
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

/// Bytes of each row's planes, `width` of them.
void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream);

}  // namespace tessera::ops
