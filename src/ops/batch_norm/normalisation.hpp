// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"

#include "ops/activation/rows.hpp"

/// What batch norm does to rows on the CPU, in fp32 or fp64.
namespace tessera::ops {

/// y = (x - mean) * factor + shift for each column, and an activation of it. The distance is taken
/// before the product: folding the mean into the shift would lose digits of columns far from 0.
template <class W>
struct Normalisation {
  Buffer<W> mean, factor, shift, no_bias;
  ActivationFormula formula;

  Normalisation(std::int64_t cols, const ActivationFormula& given)
      : mean(cols), factor(cols), shift(cols), no_bias(cols, W{0}), formula(given) {
    formula.dropout = formula.dropout.at_present();
  }

  void normalise(const MatrixView<const W>& x, const MatrixView<W>& y) const {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const W* const from = x.row(i);
      W* const to = y.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) to[j] = (from[j] - mean[j]) * factor[j] + shift[j];
    }
  }

  /// Normalised rows of which `first` is the first of the matrix's.
  ActivationRows<W> rows(const MatrixView<const W>& normalised, std::int64_t first) const {
    return activation_rows(normalised, no_bias, first);
  }
};

}  // namespace tessera::ops
