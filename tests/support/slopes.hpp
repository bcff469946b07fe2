// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"

/// Gradients against differences of the forward pass where numbers have few digits: all elements
/// of an operand take a step in the direction of their gradients, which changes the loss by the sum
/// of these.
namespace tessera::test {

/// A sum over outputs, and how far rounding of these puts it off.
struct Loss {
  double value = 0, error = 0;
};

/// Its gradient in the output is `grad_output`.
template <class T>
Loss loss_between(const Matrix<T>& output, const Matrix<T>& grad_output) {
  Loss loss;
  double squares = 0;
  for (std::int64_t i = 0; i < output.size(); ++i) {
    const double product = static_cast<double>(static_cast<float>(output.data()[i])) *
                           static_cast<double>(static_cast<float>(grad_output.data()[i]));
    loss.value += product;
    squares += product * product;
  }
  const double unit = sizeof(T) == 4 ? 0x1p-20 : std::is_same_v<T, Bfloat16> ? 0x1p-9 : 0x1p-12;
  loss.error = unit * std::sqrt(squares);
  return loss;
}

template <class T>
std::vector<double> numbers_of(const Matrix<T>& matrix) {
  std::vector<double> numbers;
  for (const T element : matrix.span()) {
    numbers.push_back(static_cast<double>(static_cast<float>(element)));
  }
  return numbers;
}

/// `loss()` reads `operand`, which is left as it was. Elements and a step beside them must be
/// numbers of T.
template <class T, class Function>
void expect_slope(Function&& loss, Matrix<T>& operand, const std::vector<double>& gradient,
                  double step, const char* what) {
  const std::vector<T> before(operand.span().begin(), operand.span().end());
  const auto after = [&](double by) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double sign = gradient[i] > 0 ? 1 : gradient[i] < 0 ? -1 : 0;
      const double moved = static_cast<double>(static_cast<float>(before[i])) + by * sign;
      operand.data()[i] = static_cast<T>(static_cast<float>(moved));
    }
    return loss();
  };
  const Loss above = after(step), below = after(-step);
  std::copy(before.begin(), before.end(), operand.span().begin());
  double expected = 0;
  for (const double element : gradient) expected += std::abs(element);
  const double noise = 3 * (above.error + below.error) / (2 * step);
  EXPECT_NEAR((above.value - below.value) / (2 * step), expected, 0.04 * expected + noise) << what;
  EXPECT_LT(noise, 0.3 * expected) << what << ": rounding hides the slope";
}

}  // namespace tessera::test
