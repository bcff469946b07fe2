// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/dense/call_chain.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/loss.hpp"

/// A layer, batch norm with ReLU, a second layer, the loss, and the gradients of all of it.
namespace tessera::ops {

using test::DeviceMatrix;
using test::normal_matrix;
using test::with_type_of;

struct ChainWidths {
  std::int64_t rows, in, hidden, out;
};

struct Named {
  std::string name;
  Matrix<double> values;
};

/// What is compared with: in double, or as wide as what is tested where intermediate results are
/// rounded.
template <class T>
using Expected = std::conditional_t<std::is_same_v<T, float>, double, T>;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Matrix<T> input(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  // Rounded to 16 bits first, so that every precision begins with the same numbers.
  const Matrix<Bfloat16> rounded = normal_matrix<Bfloat16>(rows, cols, seed);
  Matrix<T> result(rows, cols);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data()[i] = static_cast<T>(static_cast<float>(rounded.data()[i]));
  }
  return result;
}

/// Small whole numbers: their products are exact everywhere, so that no precision takes a number
/// near 0 to the other side of ReLU.
template <class T>
Matrix<T> whole_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<T> result = input<T>(rows, cols, seed);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double number = std::round(static_cast<double>(result.data()[i]));
    result.data()[i] = static_cast<T>(static_cast<float>(std::clamp(number, -3.0, 3.0)));
  }
  return result;
}

template <class T>
class ChainScene {
 public:
  ChainScene(const ChainWidths& widths, Device device, std::int64_t margin)
      : w_(widths), device_(device), margin_(margin) {}

  /// Where they are `cut`, the gradients do not wait for the calls before them.
  std::vector<Named> run(bool holds, bool training, bool cut = false) {
    const DenseWorkspace* const workspace = test::workspace_on(device_);
    CallChain chain;
    CallChain* const joined = holds ? &chain : nullptr;
    ActivationOptions relu;
    relu.activation = Activation::relu;
    const BatchNormOptions options{1e-5, 0.1, training};
    linear(x, first, first_bias, inner, device_, {}, workspace, Precision::fp32, {}, joined);
    batch_norm(inner, gamma, beta, options, {mean, variance}, normed, saved_mean, saved_deviation,
               device_, {}, workspace, relu, {}, {}, joined);
    linear(normed, second, second_bias, y, device_, {}, workspace, Precision::fp32, {}, joined);
    Buffer<double> value(1, Place(device_));
    const LossTargets targets = classes();
    if (training) {
      loss(y, targets, grad_y, value.data(), {}, workspace, grad_sums, joined);
      if (cut) chain.run();
      linear_backward(normed, second, grad_y, grad_second, grad_second_bias, grad_normed, device_,
                      {}, workspace, Precision::fp32, {}, joined);
      BatchNormSurroundings around;
      around.activation = relu;
      around.beta = beta;
      around.grad_shift = grad_shift;
      batch_norm_backward(inner, gamma, saved_mean, saved_deviation, grad_normed, grad_inner,
                          grad_gamma, grad_beta, device_, {}, workspace, around, joined);
      LinearSurroundings ends;
      ends.before_relu = true;
      ends.grad_x_sums = grad_x_sums;
      linear_backward(x, first, grad_inner, grad_first, grad_first_bias, grad_x, device_, {},
                      workspace, Precision::fp32, ends, joined);
    }
    chain.run();
    std::vector<Named> results;
    const auto keep = [&](const char* name, auto& matrix) {
      results.push_back({name, test::to_double(matrix.values())});
    };
    keep("y", y);
    keep("normed", normed);
    if (!training) return results;
    Matrix<double> found(1, 1);
    copy_bytes(found.data(), value.data(), sizeof(double), device_, {});
    synchronise(device_, {});
    results.push_back({"loss", std::move(found)});
    keep("gradient of y", grad_y), keep("sums of it", grad_sums);
    keep("running mean", mean), keep("running variance", variance);
    keep("gradient of the second weight", grad_second);
    keep("gradient of the second bias", grad_second_bias);
    keep("gradient of gamma", grad_gamma), keep("gradient of beta", grad_beta);
    keep("gradient of the shift", grad_shift);
    keep("gradient of the first weight", grad_first);
    keep("gradient of x", grad_x), keep("its sums", grad_x_sums);
    expect_sums_of_columns(grad_first_bias.values(), grad_inner.values());
    return results;
  }

  /// A layer whose result is normalised where it is, and the next layer.
  Matrix<double> run_in_place(bool training) {
    const DenseWorkspace* const workspace = test::workspace_on(device_);
    CallChain chain;
    CallChain* const joined = &chain;
    linear(x, first, first_bias, inner, device_, {}, workspace, Precision::fp32, {}, joined);
    batch_norm(inner, gamma, beta, {1e-5, 0.1, training}, {mean, variance}, inner, saved_mean,
               saved_deviation, device_, {}, workspace, {}, {}, {}, joined);
    linear(inner, second, second_bias, y, device_, {}, workspace, Precision::fp32, {}, joined);
    chain.run();
    return test::to_double(y.values());
  }

 private:
  /// Behind batch norm all rows of a gradient add up to almost nothing: their sum is measured by
  /// what it is the sum of.
  static void expect_sums_of_columns(const Matrix<T>& sums, const Matrix<T>& of) {
    const double tolerance = bytes_per_element(PrecisionOf<T>::value) > 2 ? 1e-5 : 5e-3;
    for (std::int64_t col = 0; col < of.cols(); ++col) {
      double sum = 0, magnitude = 0;
      for (std::int64_t row = 0; row < of.rows(); ++row) {
        const auto number = static_cast<double>(of(row, col));
        sum += number;
        magnitude += std::abs(number);
      }
      EXPECT_NEAR(static_cast<double>(sums(0, col)), sum, tolerance * magnitude)
          << "gradient of the first bias, column " << col;
    }
  }

  /// Every third row counts, the first of them twice.
  LossTargets classes() const {
    std::vector<std::int64_t> labels, rows = {0};
    for (std::int64_t row = 0; row < w_.rows; ++row) {
      labels.push_back(row * 7 % w_.out);
      if (row % 3 == 0) rows.push_back(row);
    }
    return LossTargets::classes(labels, rows, w_.out, Place(device_));
  }

  template <class U = T>
  DeviceMatrix<U> given(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    return {input<U>(rows, cols, seed), device_, margin_};
  }
  DeviceMatrix<T> whole(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    return {whole_numbers<T>(rows, cols, seed), device_, margin_};
  }
  template <class U = T>
  DeviceMatrix<U> result(std::int64_t rows, std::int64_t cols) {
    return {rows, cols, device_, margin_};
  }
  /// Numbers around 1.
  DeviceMatrix<Wide<T>> positive(std::uint64_t seed) {
    Matrix<Wide<T>> values = input<Wide<T>>(1, w_.hidden, seed);
    for (std::int64_t i = 0; i < values.size(); ++i) {
      values.data()[i] = Wide<T>(1) + values.data()[i] * values.data()[i];
    }
    return {values, device_, margin_};
  }

  ChainWidths w_;
  Device device_;
  std::int64_t margin_;

 public:
  DeviceMatrix<T> x = whole(w_.rows, w_.in, 1), first = whole(w_.hidden, w_.in, 2);
  DeviceMatrix<T> first_bias = whole(1, w_.hidden, 3), second = given(w_.out, w_.hidden, 4);
  DeviceMatrix<T> second_bias = given(1, w_.out, 5), grad_y = result(w_.rows, w_.out);
  DeviceMatrix<Wide<T>> gamma = given<Wide<T>>(1, w_.hidden, 7);
  DeviceMatrix<Wide<T>> beta = given<Wide<T>>(1, w_.hidden, 8);
  DeviceMatrix<Wide<T>> mean = given<Wide<T>>(1, w_.hidden, 9), variance = positive(10);
  DeviceMatrix<Wide<T>> saved_mean = result<Wide<T>>(1, w_.hidden);
  DeviceMatrix<Wide<T>> saved_deviation = result<Wide<T>>(1, w_.hidden);
  DeviceMatrix<T> inner = result(w_.rows, w_.hidden), normed = result(w_.rows, w_.hidden);
  DeviceMatrix<T> y = result(w_.rows, w_.out), grad_normed = result(w_.rows, w_.hidden);
  DeviceMatrix<T> grad_inner = result(w_.rows, w_.hidden), grad_x = result(w_.rows, w_.in);
  DeviceMatrix<T> grad_second = result(w_.out, w_.hidden), grad_second_bias = result(1, w_.out);
  DeviceMatrix<T> grad_first = result(w_.hidden, w_.in), grad_first_bias = result(1, w_.hidden);
  DeviceMatrix<T> grad_sums = result(1, w_.out);
  DeviceMatrix<T> grad_shift = result(1, w_.hidden), grad_x_sums = result(1, w_.in);
  DeviceMatrix<Wide<T>> grad_gamma = result<Wide<T>>(1, w_.hidden);
  DeviceMatrix<Wide<T>> grad_beta = result<Wide<T>>(1, w_.hidden);
};

}  // namespace tessera::ops
