// SPDX-License-Identifier: Apache-2.0
#include "graph/narrow_indices.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/device_build.hpp"

namespace tessera::detail {
namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

/// Returns the first position out of range.
std::int64_t narrow(std::span<const std::int64_t> wide, std::int64_t bound, VertexId* to) {
  const auto convert = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first_bad = none;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t value = wide[static_cast<std::size_t>(k)];
      if ((value < 0 || value >= bound) && first_bad == none) first_bad = k;
      to[k] = static_cast<VertexId>(value);
    }
    return first_bad;
  };
  return parallel_reduce(std::ssize(wide), 1 << 16, none, convert,
                         [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
}

}  // namespace

void report_out_of_range(const char* word, std::int64_t value, std::int64_t bound,
                         std::int64_t position) {
  throw Error(ErrorCode::bad_data,
              fmt::format("{} index {} is outside [0, {})", word, value, bound),
              fmt::format("edge at position {}", position),
              "count from 0, or raise the number of vertices");
}

SharedArray<VertexId> narrowed(const Indices& indices, std::int64_t bound, const char* word,
                               const Place& place) {
  if (!indices.is_wide()) {
    return SharedArray<VertexId>(nullptr, indices.narrow().data(), indices.size());
  }
  if (place.device.kind != DeviceKind::cpu) {
    return narrowed_on_device(indices.wide(), bound, word, place);
  }
  Buffer<VertexId> copy(indices.size());
  const std::int64_t bad = narrow(indices.wide(), bound, copy.data());
  if (bad != none) {
    report_out_of_range(word, indices.wide()[static_cast<std::size_t>(bad)], bound, bad);
  }
  return copy;
}

}  // namespace tessera::detail
