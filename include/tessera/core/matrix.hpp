// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <type_traits>

#include "tessera/core/dtype.hpp"
#include "tessera/core/memory.hpp"

namespace tessera {

/// A row-major matrix somewhere else: never owns. `stride` is the distance between rows. Whoever
/// owns the memory says where it lies; a view of a bare pointer is one of this process' memory
/// unless it names another device.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  Device device = {};

  MatrixView() = default;
  MatrixView(T* values, std::int64_t num_rows, std::int64_t num_cols, Device where = {})
      : MatrixView(values, num_rows, num_cols, num_cols, where) {}
  MatrixView(T* values, std::int64_t num_rows, std::int64_t num_cols, std::int64_t row_stride,
             Device where = {})
      : data(values), rows(num_rows), cols(num_cols), stride(row_stride), device(where) {}

  T* row(std::int64_t i) const noexcept { return data + i * stride; }
  T& operator()(std::int64_t i, std::int64_t j) const noexcept { return data[i * stride + j]; }

  operator MatrixView<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride, device};
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
  Device device() const noexcept { return values_.device(); }
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

  MatrixView<T> view() noexcept { return {data(), rows_, cols_, device()}; }
  MatrixView<const T> view() const noexcept { return {data(), rows_, cols_, device()}; }
  operator MatrixView<T>() noexcept { return view(); }
  operator MatrixView<const T>() const noexcept { return view(); }

 private:
  Buffer<T> values_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
};

/// The first elements of a buffer as a matrix.
template <class T>
MatrixView<T> matrix_in(Buffer<T>& buffer, std::int64_t rows, std::int64_t cols) {
  return {buffer.data(), rows, cols, buffer.device()};
}
template <class T>
MatrixView<const T> matrix_in(const Buffer<T>& buffer, std::int64_t rows, std::int64_t cols) {
  return {buffer.data(), rows, cols, buffer.device()};
}

/// A matrix of single bits somewhere else. Bit j of a row is bit j % 32 of its word j / 32; rows
/// begin `words_per_row` words apart. The bits of a row's words behind its `cols` are padding:
/// readers take whole words, so writers leave them 0.
template <class Word>
struct BitsView {
  static_assert(std::is_same_v<std::remove_const_t<Word>, std::uint32_t>);

  Word* words = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t words_per_row = 0;
  Device device = {};

  std::int64_t padding() const noexcept { return words_per_row * 32 - cols; }
  bool get(std::int64_t i, std::int64_t j) const noexcept {
    return (words[i * words_per_row + j / 32] >> (j % 32) & 1u) != 0;
  }
  void set(std::int64_t i, std::int64_t j, bool bit) const noexcept
      requires(!std::is_const_v<Word>) {
    Word& word = words[i * words_per_row + j / 32];
    const Word mask = Word{1} << (j % 32);
    word = bit ? word | mask : word & ~mask;
  }

  operator BitsView<const Word>() const noexcept requires(!std::is_const_v<Word>) {
    return {words, rows, cols, words_per_row, device};
  }
};

/// One line: type, shape, stride where it is not the width, device.
void describe_matrix(std::ostream& out, ElementType type, std::int64_t rows, std::int64_t cols,
                     std::int64_t stride, Device device);

template <class T>
std::ostream& operator<<(std::ostream& out, const MatrixView<T>& view) {
  describe_matrix(out, ElementTypeOf<std::remove_const_t<T>>::value, view.rows, view.cols,
                  view.stride, view.device);
  return out;
}
template <class T>
std::ostream& operator<<(std::ostream& out, const Matrix<T>& matrix) {
  return out << matrix.view();
}
template <class Word>
std::ostream& operator<<(std::ostream& out, const BitsView<Word>& view) {
  describe_matrix(out, ElementType::bits, view.rows, view.cols, view.words_per_row * 32,
                  view.device);
  return out;
}

}  // namespace tessera
