// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "tessera/core/memory.hpp"

namespace tessera {

/// A row-major matrix somewhere else: never owns. `stride` is the distance between rows.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  MatrixView() = default;
  MatrixView(T* values, std::int64_t num_rows, std::int64_t num_cols)
      : MatrixView(values, num_rows, num_cols, num_cols) {}
  MatrixView(T* values, std::int64_t num_rows, std::int64_t num_cols, std::int64_t row_stride)
      : data(values), rows(num_rows), cols(num_cols), stride(row_stride) {}

  T* row(std::int64_t i) const noexcept { return data + i * stride; }
  T& operator()(std::int64_t i, std::int64_t j) const noexcept { return data[i * stride + j]; }

  operator MatrixView<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }
};

/// An owned, contiguous, row-major matrix; uninitialised unless a value is given.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols, MemoryResource& resource = host_memory(),
         Stream stream = {})
      : values_(checked_area(rows, cols), resource, stream), rows_(rows), cols_(cols) {}
  Matrix(std::int64_t rows, std::int64_t cols, T value) : Matrix(rows, cols) {
    for (T& element : values_) element = value;
  }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  std::int64_t size() const noexcept { return values_.size(); }
  T* data() noexcept { return values_.data(); }
  const T* data() const noexcept { return values_.data(); }
  T* row(std::int64_t i) noexcept { return values_.data() + i * cols_; }
  const T* row(std::int64_t i) const noexcept { return values_.data() + i * cols_; }
  T& operator()(std::int64_t i, std::int64_t j) noexcept { return values_[i * cols_ + j]; }
  const T& operator()(std::int64_t i, std::int64_t j) const noexcept {
    return values_[i * cols_ + j];
  }
  std::span<T> span() noexcept { return values_.span(); }
  std::span<const T> span() const noexcept { return values_.span(); }

  MatrixView<T> view() noexcept { return {data(), rows_, cols_}; }
  MatrixView<const T> view() const noexcept { return {data(), rows_, cols_}; }
  operator MatrixView<T>() noexcept { return view(); }
  operator MatrixView<const T>() const noexcept { return view(); }

 private:
  Buffer<T> values_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
};

}  // namespace tessera
