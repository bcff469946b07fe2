// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/elements.cuh"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

template <class T>
cuda::Rows<const T> rows_of(const ConstOperand& operand) {
  return {static_cast<const T*>(operand.data), operand.stride};
}

template <class T>
cuda::Rows<T> rows_of(const Operand& operand) {
  return {static_cast<T*>(operand.data), operand.stride};
}

/// The elements of a 1 x n matrix.
template <class T>
const T* values_of(const ConstOperand& operand) {
  return static_cast<const T*>(operand.data);
}

template <class T>
T* values_of(const Operand& operand) {
  return static_cast<T*>(operand.data);
}

/// One value for each column, as a pass sees it that asks where its operands lie.
template <class T>
cuda::Rows<const T> columns_of(const T* values) {
  return {values, 0};
}

}  // namespace tessera::ops
