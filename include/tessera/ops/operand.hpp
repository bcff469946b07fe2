// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"

namespace tessera::ops {

/// The precision of a plan whose matrices hold T.
template <class T>
struct PrecisionOf;
template <>
struct PrecisionOf<double> {
  static constexpr Precision value = Precision::fp64;
};
template <>
struct PrecisionOf<float> {
  static constexpr Precision value = Precision::fp32;
};
template <>
struct PrecisionOf<Bfloat16> {
  static constexpr Precision value = Precision::bf16;
};
template <>
struct PrecisionOf<Float16> {
  static constexpr Precision value = Precision::fp16;
};

/// A matrix whose element type and device are known at run time: what ops take, so that one
/// function serves all types and devices. Made from a `MatrixView<T>`, `Matrix<T>` or `BitsView`
/// without a cast, or from a pointer, a type and a device. Never owns. `stride` counts elements;
/// rows of bits begin at whole 32-bit words.
struct Operand {
  void* data = nullptr;
  ElementType type = ElementType::fp32;
  Device device = {};
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  Operand() = default;
  /// Memory that somebody else owns, a framework's tensor for example.
  Operand(void* memory, ElementType element_type, Device where, std::int64_t num_rows,
          std::int64_t num_cols, std::int64_t row_stride)
      : data(memory),
        type(element_type),
        device(where),
        rows(num_rows),
        cols(num_cols),
        stride(row_stride) {}
  Operand(void* memory, ElementType element_type, Device where, std::int64_t num_rows,
          std::int64_t num_cols)
      : Operand(memory, element_type, where, num_rows, num_cols, num_cols) {}
  template <class T>
  requires(!std::is_const_v<T>) Operand(MatrixView<T> view)
      : Operand(view.data, ElementTypeOf<T>::value, view.device, view.rows, view.cols,
                view.stride) {}
  template <class T>
  Operand(Matrix<T>& matrix) : Operand(matrix.view()) {}
  Operand(BitsView<std::uint32_t> view)
      : Operand(view.words, ElementType::bits, view.device, view.rows, view.cols,
                view.words_per_row * 32) {}

  bool absent() const noexcept { return data == nullptr && rows == 0 && cols == 0; }
  template <class T>
  MatrixView<T> as() const {
    return {static_cast<T*>(data), rows, cols, stride, device};
  }
};

/// The same, only to be read.
struct ConstOperand {
  const void* data = nullptr;
  ElementType type = ElementType::fp32;
  Device device = {};
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  ConstOperand() = default;
  ConstOperand(const void* memory, ElementType element_type, Device where, std::int64_t num_rows,
               std::int64_t num_cols, std::int64_t row_stride)
      : data(memory),
        type(element_type),
        device(where),
        rows(num_rows),
        cols(num_cols),
        stride(row_stride) {}
  ConstOperand(const void* memory, ElementType element_type, Device where, std::int64_t num_rows,
               std::int64_t num_cols)
      : ConstOperand(memory, element_type, where, num_rows, num_cols, num_cols) {}
  template <class T>
  ConstOperand(MatrixView<T> view)
      : ConstOperand(view.data, ElementTypeOf<std::remove_const_t<T>>::value, view.device,
                     view.rows, view.cols, view.stride) {}
  template <class T>
  ConstOperand(const Matrix<T>& matrix) : ConstOperand(matrix.view()) {}
  template <class Word>
  ConstOperand(BitsView<Word> view)
      : ConstOperand(view.words, ElementType::bits, view.device, view.rows, view.cols,
                     view.words_per_row * 32) {}
  ConstOperand(const Operand& operand)
      : ConstOperand(operand.data, operand.type, operand.device, operand.rows, operand.cols,
                     operand.stride) {}

  bool absent() const noexcept { return data == nullptr && rows == 0 && cols == 0; }
  template <class T>
  MatrixView<const T> as() const {
    return {static_cast<const T*>(data), rows, cols, stride, device};
  }
};

/// One line: type, shape, stride where it is not the width, device.
std::ostream& operator<<(std::ostream& out, const ConstOperand& operand);

}  // namespace tessera::ops
