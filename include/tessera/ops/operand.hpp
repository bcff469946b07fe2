// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"

namespace tessera::ops {

/// The storage precision of an element type.
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

/// A matrix whose element type is known at run time: what ops take, so that one function serves all
/// precisions and devices. Made from a `MatrixView<T>` or `Matrix<T>` without a cast. Never owns.
struct Operand {
  void* data = nullptr;
  Precision precision = Precision::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  Operand() = default;
  template <class T>
  requires(!std::is_const_v<T>) Operand(MatrixView<T> view)
      : data(view.data),
        precision(PrecisionOf<T>::value),
        rows(view.rows),
        cols(view.cols),
        stride(view.stride) {}
  template <class T>
  Operand(Matrix<T>& matrix) : Operand(matrix.view()) {}

  bool absent() const noexcept { return data == nullptr && rows == 0 && cols == 0; }
  template <class T>
  MatrixView<T> as() const {
    return {static_cast<T*>(data), rows, cols, stride};
  }
};

/// The same, only to be read.
struct ConstOperand {
  const void* data = nullptr;
  Precision precision = Precision::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  ConstOperand() = default;
  template <class T>
  ConstOperand(MatrixView<T> view)
      : data(view.data),
        precision(PrecisionOf<std::remove_const_t<T>>::value),
        rows(view.rows),
        cols(view.cols),
        stride(view.stride) {}
  template <class T>
  ConstOperand(const Matrix<T>& matrix) : ConstOperand(matrix.view()) {}
  ConstOperand(const Operand& operand)
      : data(operand.data),
        precision(operand.precision),
        rows(operand.rows),
        cols(operand.cols),
        stride(operand.stride) {}

  bool absent() const noexcept { return data == nullptr && rows == 0 && cols == 0; }
  template <class T>
  MatrixView<const T> as() const {
    return {static_cast<const T*>(data), rows, cols, stride};
  }
};

}  // namespace tessera::ops
