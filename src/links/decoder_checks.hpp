// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include "tessera/core/matrix.hpp"
#include "tessera/links/split.hpp"

#include "ops/plan/check.hpp"

/// What decoders of pairs check.
namespace tessera::links {

inline constexpr ops::Checker decoder_check("link decoder", Device{});

template <class T>
ops::Expected expected(std::int64_t rows, std::int64_t cols) {
  return {ElementTypeOf<T>::value, rows, cols};
}

inline void require_ids(std::span<const VertexId> ids, VertexId count, const char* what) {
  const auto odd =
      std::find_if(ids.begin(), ids.end(), [&](VertexId id) { return id < 0 || id >= count; });
  if (odd == ids.end()) return;
  decoder_check.fail(fmt::format("pair {} has {} {}, of {}", odd - ids.begin(), what, *odd, count),
                     "number them as the rows of their embeddings");
}

inline void require_one_each(std::size_t numbers, const Pairs& pairs, const char* what) {
  decoder_check.that(static_cast<std::int64_t>(numbers) == pairs.size(),
                     fmt::format("{} {} for {} pairs", numbers, what, pairs.size()),
                     "give one for each pair");
}

}  // namespace tessera::links
