// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/core/memory.hpp"

#include "ops/dense/row_ranges.hpp"

/// How the CPU's dense ops compute with 16-bit matrices: in fp32, a few rows at a time.
namespace tessera::ops {

/// What is computed in where a matrix stores T.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Bfloat16>, float, T>;

template <class T>
inline constexpr bool is_wide = std::is_same_v<T, Wide<T>>;

template <class T>
T rounded_to(double value) {
  return T(static_cast<Wide<T>>(value));
}

/// Calls `body(first, last)` on rows [begin, end): all of them, or as many of 16 bits as stay in a
/// cache when they are widened.
template <class T, class Body>
void for_wide_rows(std::int64_t begin, std::int64_t end, std::int64_t cols, Body&& body) {
  constexpr std::int64_t at_once = 8192;  // elements
  const std::int64_t height =
      is_wide<T> ? std::max<std::int64_t>(end - begin, 1)
                 : std::max<std::int64_t>(at_once / std::max<std::int64_t>(cols, 1), 1);
  for (std::int64_t first = begin; first < end; first += height) {
    body(first, std::min(first + height, end));
  }
}

/// The same on all rows, in parallel.
template <class T, class Body>
void for_all_wide_rows(std::int64_t rows, std::int64_t cols, Body&& body) {
  for_row_ranges(rows, cols, [&](std::int64_t begin, std::int64_t end) {
    for_wide_rows<T>(begin, end, cols, body);
  });
}

/// A 1 x n matrix, widened.
template <class T>
Buffer<Wide<T>> wide_values(MatrixView<const T> row) {
  Buffer<Wide<T>> values(row.cols);
  std::copy_n(row.data, row.cols, values.data());
  return values;
}

/// Rows [begin, end) of a matrix as they are computed with: where they lie, or a widened copy.
/// Absent where the matrix is.
template <class T>
class ReadRows {
 public:
  ReadRows(MatrixView<const T> matrix, std::int64_t begin, std::int64_t end) {
    if (matrix.data == nullptr) return;
    if constexpr (is_wide<T>) {
      rows_ = {matrix.row(begin), end - begin, matrix.cols, matrix.stride};
    } else {
      copy_ = Buffer<float>((end - begin) * matrix.cols);
      for (std::int64_t i = begin; i < end; ++i) {
        std::copy_n(matrix.row(i), matrix.cols, copy_.data() + (i - begin) * matrix.cols);
      }
      rows_ = {copy_.data(), end - begin, matrix.cols};
    }
  }

  /// Row 0 is row `begin`.
  const MatrixView<const Wide<T>>& rows() const noexcept { return rows_; }

 private:
  MatrixView<const Wide<T>> rows_;
  Buffer<float> copy_;
};

/// Rows [begin, end) of a matrix to be written: what was widened is rounded back when this goes.
template <class T>
class WrittenRows {
 public:
  enum class Before { unused, read };

  WrittenRows(MatrixView<T> matrix, std::int64_t begin, std::int64_t end,
              Before before = Before::unused)
      : matrix_(matrix), begin_(begin) {
    if (matrix.data == nullptr) return;
    if constexpr (is_wide<T>) {
      rows_ = {matrix.row(begin), end - begin, matrix.cols, matrix.stride};
    } else {
      copy_ = Buffer<float>((end - begin) * matrix.cols);
      rows_ = {copy_.data(), end - begin, matrix.cols};
      if (before == Before::unused) return;
      for (std::int64_t i = 0; i < rows_.rows; ++i) {
        std::copy_n(matrix.row(begin + i), matrix.cols, rows_.row(i));
      }
    }
  }
  WrittenRows(const WrittenRows&) = delete;
  WrittenRows& operator=(const WrittenRows&) = delete;
  ~WrittenRows() {
    if constexpr (!is_wide<T>) {
      for (std::int64_t i = 0; i < rows_.rows; ++i) {
        std::transform(rows_.row(i), rows_.row(i) + rows_.cols, matrix_.row(begin_ + i),
                       [](float value) { return T(value); });
      }
    }
  }

  const MatrixView<Wide<T>>& rows() const noexcept { return rows_; }

 private:
  MatrixView<T> matrix_;
  std::int64_t begin_;
  MatrixView<Wide<T>> rows_;
  Buffer<float> copy_;
};

}  // namespace tessera::ops
