// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/core/memory.hpp"

#include "ops/activation/kernels.hpp"

/// Rows as the kernels of activations take them, in fp32 or fp64.
namespace tessera::ops {

/// Rows of x, of which `first` is the first of the matrix's.
template <class W>
ActivationRows<W> activation_rows(MatrixView<const W> x, const Buffer<W>& bias,
                                  std::int64_t first) {
  ActivationRows<W> rows;
  rows.rows = x.rows;
  rows.cols = x.cols;
  rows.first_element = static_cast<std::uint64_t>(first * x.cols);
  rows.x = x.data;
  rows.x_stride = x.stride;
  rows.bias = bias.data();
  return rows;
}

inline void activate_forward(const ActivationFormula& formula, const ActivationRows<float>& rows) {
  activation().forward_fp32(formula, rows);
}
inline void activate_forward(const ActivationFormula& formula, const ActivationRows<double>& rows) {
  activation().forward_fp64(formula, rows);
}
inline void activate_backward(const ActivationFormula& formula, const ActivationRows<float>& rows) {
  activation().backward_fp32(formula, rows);
}
inline void activate_backward(const ActivationFormula& formula,
                              const ActivationRows<double>& rows) {
  activation().backward_fp64(formula, rows);
}

}  // namespace tessera::ops
