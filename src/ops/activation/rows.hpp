// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/core/memory.hpp"

#include "ops/activation/kernels.hpp"

/// Rows as the kernels of activations take them, in fp32 or fp64.
namespace tessera::ops {

/// Rows of x, of which `first` is the first of the matrix's, and where their results go.
template <class W>
ActivationRows<W> activation_rows(MatrixView<const W> x, const Buffer<W>& bias, std::int64_t first,
                                  const MatrixView<W>& output) {
  ActivationRows<W> rows;
  rows.rows = x.rows;
  rows.cols = x.cols;
  rows.first_element = static_cast<std::uint64_t>(first * x.cols);
  rows.x = x.data;
  rows.x_stride = x.stride;
  rows.bias = bias.data();
  rows.output = output.data;
  rows.output_stride = output.stride;
  return rows;
}

template <class W>
void activate_forward(const ActivationFormula& formula, const ActivationRows<W>& rows) {
  activation().of<W>().forward(formula, rows);
}

/// With rows of the gradient.
template <class W>
void activate_backward(const ActivationFormula& formula, ActivationRows<W> rows,
                       const MatrixView<const W>& grad_y) {
  rows.grad_y = grad_y.data;
  rows.grad_y_stride = grad_y.stride;
  activation().of<W>().backward(formula, rows);
}

}  // namespace tessera::ops
