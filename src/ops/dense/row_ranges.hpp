// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

/// Loops of dense ops over the rows of a matrix.
namespace tessera::ops {

/// Runs `body(begin, end)` on ranges of rows in parallel, each large enough to be worth a task.
template <class Body>
void for_row_ranges(std::int64_t rows, std::int64_t cols, Body&& body) {
  constexpr std::int64_t elements_per_range = 1 << 15;
  const std::int64_t grain = 1 + elements_per_range / std::max<std::int64_t>(cols, 1);
  parallel_ranges(rows, grain, body);
}

/// Runs `body(row)` on all rows in parallel.
template <class Body>
void for_each_row(std::int64_t rows, std::int64_t cols, Body&& body) {
  for_row_ranges(rows, cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

/// `width` sums over all rows, in double. `body(begin, end, sums)` adds rows [begin, end) to sums
/// that start as 0. The ranges depend on `rows` alone and are added in order, so the result is the
/// same bits for any number of threads.
template <class Body>
Buffer<double> sum_over_rows(std::int64_t rows, std::int64_t width, Body&& body) {
  constexpr std::int64_t max_ranges = 64;
  const std::int64_t grain = std::max<std::int64_t>((rows + max_ranges - 1) / max_ranges, 64);
  const std::int64_t ranges = (rows + grain - 1) / grain;
  Buffer<double> partial(checked_area(std::max<std::int64_t>(ranges, 1), width), 0.0);
  parallel_ranges(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    body(begin, end, partial.data() + begin / grain * width);
  });
  Buffer<double> sums(width, 0.0);
  for (std::int64_t range = 0; range < ranges; ++range) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += partial[range * width + j];
  }
  return sums;
}

/// The same, where `body(row, sums)` adds one row.
template <class Body>
Buffer<double> sum_each_row(std::int64_t rows, std::int64_t width, Body&& body) {
  return sum_over_rows(rows, width, [&](std::int64_t begin, std::int64_t end, double* sums) {
    for (std::int64_t row = begin; row < end; ++row) body(row, sums);
  });
}

}  // namespace tessera::ops
