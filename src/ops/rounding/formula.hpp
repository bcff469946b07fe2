// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "quant/code_steps.hpp"

namespace tessera::ops {

using quant::CodeSteps;

/// How far the range of a column of few bits may reach: some root mean squares of the numbers that
/// are not 0. Sums over a graph have outliers, such as vertices without neighbours, and all other
/// numbers would share the few codes below them. Some rows stand for all; their squares are added
/// as whole numbers, so that every device finds the same.
struct ColumnLimit {
  static constexpr std::int64_t most_rows = 1024;  ///< that are looked at
  /// Of the reach, that a number is counted in: as a power of two it keeps all digits of a share,
  /// and the squares of all rows fit 64 bits.
  static constexpr std::int64_t parts = std::int64_t{1} << 26;

  std::uint64_t squares = 0;
  std::uint64_t count = 0;

  static constexpr bool applies(int bits) { return bits < 8; }
  TESSERA_ANYWHERE static std::int64_t num_rows(std::int64_t rows) {
    return rows < most_rows ? rows : most_rows;
  }
  /// One of each of `most_rows` equal shares of the rows, at a place that differs from share to
  /// share, so that rows which repeat themselves are all met.
  TESSERA_ANYWHERE static std::int64_t row(std::int64_t i, std::int64_t rows) {
    if (rows <= most_rows) return i;
    const std::int64_t begin = i * rows / most_rows;
    const std::int64_t width = (i + 1) * rows / most_rows - begin;
    std::uint32_t place = static_cast<std::uint32_t>(i + 1) * 0x9E3779B9u;
    place = (place ^ place >> 15) * 0x85EBCA6Bu;
    place ^= place >> 13;
    return begin + static_cast<std::int64_t>(
                       (std::uint64_t{place} * static_cast<std::uint64_t>(width)) >> 32);
  }
  /// A number of a column that reaches so far from 0.
  template <class Real>
  TESSERA_ANYWHERE void take(Real value, Real reach) {
    const Real share = std::abs(value) / reach;
    if (!(share > 0 && share <= 1)) return;
    const Real counted = share * static_cast<Real>(parts);
    // No number is too small to count.
    const auto whole = counted < 1 ? 1 : static_cast<std::uint64_t>(std::rint(counted));
    squares += whole * whole;
    ++count;
  }
  template <class Real>
  TESSERA_ANYWHERE Real operator()(Real reach, int bits) const {
    if (count == 0) return reach;
    const double mean = static_cast<double>(squares) / static_cast<double>(count);
    const double most = (1 + bits * 0.5) * std::sqrt(mean) / static_cast<double>(parts);
    return most < 1 ? static_cast<Real>(static_cast<float>(most)) * reach : reach;
  }
};

}  // namespace tessera::ops
