// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <type_traits>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/core/random.hpp"

/// Matrices for the tests of ops.
namespace tessera::test {

/// The first standard normal numbers of a seed, `count` of them or as many as are kept. Tests ask
/// for them in many shapes and types, and to find them takes longer than what most do with them.
inline const std::vector<double>& first_normals(std::uint64_t seed, std::int64_t count) {
  constexpr std::size_t most_seeds = 16;
  constexpr std::int64_t most_numbers = 1 << 20;
  thread_local std::map<std::uint64_t, std::vector<double>> kept;
  if (kept.size() == most_seeds && !kept.contains(seed)) kept.clear();
  std::vector<double>& numbers = kept[seed];
  const Random random(seed);
  while (std::ssize(numbers) < std::min(count, most_numbers)) {
    numbers.push_back(random.normal(numbers.size()));
  }
  return numbers;
}

/// Standard normal numbers, the same for every type up to rounding.
template <class T>
Matrix<T> normal_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const Random random(seed);
  Matrix<T> result(rows, cols);
  const std::vector<double>& first = first_normals(seed, result.size());
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const auto element = static_cast<std::uint64_t>(i);
    const double number = element < first.size() ? first[element] : random.normal(element);
    if constexpr (std::is_same_v<T, double>) {
      result.data()[i] = number;
    } else {
      result.data()[i] = static_cast<T>(static_cast<float>(number));
    }
  }
  return result;
}

template <class T>
Matrix<double> to_double(MatrixView<T> view) {
  Matrix<double> result(view.rows, view.cols);
  for (std::int64_t i = 0; i < view.rows; ++i) {
    for (std::int64_t j = 0; j < view.cols; ++j) result(i, j) = static_cast<double>(view(i, j));
  }
  return result;
}
template <class T>
Matrix<double> to_double(const Matrix<T>& matrix) {
  return to_double(matrix.view());
}

template <class T>
Matrix<T> copy_of(const Matrix<T>& matrix) {
  Matrix<T> result(matrix.rows(), matrix.cols());
  std::copy(matrix.span().begin(), matrix.span().end(), result.data());
  return result;
}

template <class T>
bool same_bits(const Matrix<T>& a, const Matrix<T>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         (a.size() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0);
}

/// The largest |got - expected| / (1 + |expected|). Not-a-number counts as equal to itself.
template <class T>
double largest_difference(MatrixView<T> got, const Matrix<double>& expected) {
  double worst = 0;
  for (std::int64_t i = 0; i < got.rows; ++i) {
    for (std::int64_t j = 0; j < got.cols; ++j) {
      const auto value = static_cast<double>(got(i, j));
      if (std::isnan(value) && std::isnan(expected(i, j))) continue;
      const double error = std::abs(value - expected(i, j)) / (1 + std::abs(expected(i, j)));
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}
template <class T>
double largest_difference(const Matrix<T>& got, const Matrix<double>& expected) {
  return largest_difference(got.view(), expected);
}

/// A matrix inside a wider one, whose other elements must stay as they are.
template <class T>
class Padded {
 public:
  Padded(std::int64_t rows, std::int64_t cols, std::int64_t margin = 3)
      : whole_(rows, cols + 2 * margin, T{77}), margin_(margin), cols_(cols) {}
  explicit Padded(const Matrix<T>& from, std::int64_t margin = 3)
      : Padded(from.rows(), from.cols(), margin) {
    for (std::int64_t i = 0; i < from.rows(); ++i) {
      for (std::int64_t j = 0; j < from.cols(); ++j) view()(i, j) = from(i, j);
    }
  }
  /// With a margin behind each row alone, which fills it up to a multiple of `multiple` numbers.
  static Padded filled(const Matrix<T>& from, std::int64_t multiple) {
    Padded padded(from.rows(), from.cols(), 0);
    const std::int64_t stride = (from.cols() + multiple - 1) / multiple * multiple;
    padded.whole_ = Matrix<T>(from.rows(), stride, T{77});
    for (std::int64_t i = 0; i < from.rows(); ++i) {
      for (std::int64_t j = 0; j < from.cols(); ++j) padded.view()(i, j) = from(i, j);
    }
    return padded;
  }
  MatrixView<T> view() {
    // Nothing may be added to a pointer to nothing.
    T* const first = whole_.size() > 0 ? whole_.data() + margin_ : nullptr;
    return {first, whole_.rows(), cols_, whole_.cols()};
  }
  /// With the margins.
  Matrix<T>& whole() { return whole_; }
  std::int64_t margin() const { return margin_; }
  /// A copy without the margins.
  Matrix<T> inner() {
    Matrix<T> copy(whole_.rows(), cols_);
    for (std::int64_t i = 0; i < copy.rows(); ++i) {
      for (std::int64_t j = 0; j < copy.cols(); ++j) copy(i, j) = view()(i, j);
    }
    return copy;
  }
  /// True when nothing was written beside the view.
  bool margins_intact() const {
    for (std::int64_t i = 0; i < whole_.rows(); ++i) {
      for (std::int64_t j = 0; j < whole_.cols(); ++j) {
        const bool inside = j >= margin_ && j < margin_ + cols_;
        if (!inside && whole_(i, j) != T{77}) return false;
      }
    }
    return true;
  }

 private:
  Matrix<T> whole_;
  std::int64_t margin_;
  std::int64_t cols_;
};

}  // namespace tessera::test
