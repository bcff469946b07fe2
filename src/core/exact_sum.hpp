// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/core/matrix.hpp"

/// Sums for references: what is rounded off is added up beside the sum, so that the error does not
/// grow with the number of terms.
namespace tessera {

class ExactSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    const double term_added = next - sum_;
    lost_ += (sum_ - (next - term_added)) + (term - term_added);
    sum_ = next;
  }
  ExactSum& operator+=(double term) {
    add(term);
    return *this;
  }
  /// What is not finite passes on as in a plain sum.
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

/// The elements of a matrix while they are summed. Without memory nothing is summed.
class ExactSums {
 public:
  explicit ExactSums(MatrixView<double> to)
      : to_(to), sums_(wanted() ? static_cast<std::size_t>(to.rows * to.cols) : 0) {}

  bool wanted() const { return to_.data != nullptr; }
  void add(std::int64_t i, std::int64_t j, double term) {
    if (wanted()) sums_[static_cast<std::size_t>(i * to_.cols + j)].add(term);
  }
  /// Writes the sums where they belong.
  void store() const {
    for (std::int64_t i = 0; wanted() && i < to_.rows; ++i) {
      for (std::int64_t j = 0; j < to_.cols; ++j) {
        to_(i, j) = sums_[static_cast<std::size_t>(i * to_.cols + j)].value();
      }
    }
  }

 private:
  MatrixView<double> to_;
  std::vector<ExactSum> sums_;
};

}  // namespace tessera
