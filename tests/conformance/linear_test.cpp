// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/linear.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ops/gemm/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_workspace.hpp"
#include "support/gemm_check.hpp"
#include "support/matrices.hpp"
#include "tessera/core/error.hpp"

/// Dense layers and their gradients on every device, against products of doubles.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

constexpr Transpose no = Transpose::no, yes = Transpose::yes;

class LinearOps : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
};

struct LayerShape {
  std::int64_t rows, in, out;
};

Matrix<double> absolute(const Matrix<double>& matrix) {
  Matrix<double> result(matrix.rows(), matrix.cols());
  for (std::int64_t i = 0; i < matrix.size(); ++i) result.data()[i] = std::abs(matrix.data()[i]);
  return result;
}

/// What is computed and how large its terms are.
struct Expected {
  Matrix<double> values, magnitude;

  Expected(std::int64_t rows, std::int64_t cols)
      : values(rows, cols, 0.0), magnitude(rows, cols, 0.0) {}
  void multiply(Transpose turn_a, Transpose turn_b, const Matrix<double>& a,
                const Matrix<double>& b) {
    reference::gemm(turn_a, turn_b, 1, a, b, 1, values);
    reference::gemm(turn_a, turn_b, 1, absolute(a), absolute(b), 1, magnitude);
  }
  void add_to_rows(const Matrix<double>& row) {
    for (std::int64_t i = 0; i < values.size(); ++i) {
      values.data()[i] += row.data()[i % row.cols()];
      magnitude.data()[i] += std::abs(row.data()[i % row.cols()]);
    }
  }
};

template <class T>
void expect_agreement(const char* what, DeviceMatrix<T>& computed, const Expected& expected) {
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  if (std::is_same_v<T, Float16>) tolerance.of_result = 0x1p-11;
  // The product is rounded before the bias is added to it where both have 16 bits.
  tolerance.of_magnitude += tolerance.of_result;
  EXPECT_EQ(testing::first_mismatch(computed.values().view(), expected.values, expected.magnitude,
                                    tolerance),
            "")
      << what;
}

template <class T>
void check_linear(const LayerShape& shape, std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message()
               << shape.rows << " x " << shape.in << " -> " << shape.out << " margin " << margin);
  const auto x = normal_matrix<T>(shape.rows, shape.in, 1);
  const auto weight = normal_matrix<T>(shape.out, shape.in, 2);
  const auto bias = normal_matrix<T>(1, shape.out, 3);
  const auto slopes = normal_matrix<T>(shape.rows, shape.out, 4);
  DeviceMatrix<T> from(x, device, margin), w(weight, device, margin), b(bias, device, 0);
  DeviceMatrix<T> grad_y(slopes, device, margin), y(shape.rows, shape.out, device, margin);
  const DenseWorkspace* const workspace = test::workspace_on(device);

  linear(from, w, b, y, device, {}, workspace);
  Expected of_y(shape.rows, shape.out);
  of_y.multiply(no, yes, to_double(x), to_double(weight));
  of_y.add_to_rows(to_double(bias));
  expect_agreement("y", y, of_y);

  Expected of_weight(shape.out, shape.in), of_bias(1, shape.out), of_x(shape.rows, shape.in);
  of_weight.multiply(yes, no, to_double(slopes), to_double(x));
  of_bias.multiply(no, no, Matrix<double>(1, shape.rows, 1.0), to_double(slopes));
  of_x.multiply(no, no, to_double(slopes), to_double(weight));
  const auto run = [&](bool with_weight, bool with_bias, bool with_x) {
    SCOPED_TRACE(::testing::Message() << with_weight << with_bias << with_x);
    DeviceMatrix<T> grad_w(shape.out, shape.in, device, margin), grad_b(1, shape.out, device, 0);
    DeviceMatrix<T> grad_x(shape.rows, shape.in, device, margin);
    const auto once = [&] {
      linear_backward(from, with_x ? ConstOperand(w) : ConstOperand(), grad_y,
                      with_weight ? Operand(grad_w) : Operand(),
                      with_bias ? Operand(grad_b) : Operand(), with_x ? Operand(grad_x) : Operand(),
                      device, {}, workspace);
    };
    once();
    if (with_weight) expect_agreement("grad_weight", grad_w, of_weight);
    if (with_bias) expect_agreement("grad_bias", grad_b, of_bias);
    if (with_x) expect_agreement("grad_x", grad_x, of_x);
    if (!with_weight || !with_bias || !with_x) return;
    const Matrix<T> first_w = grad_w.values(), first_b = grad_b.values(), first_x = grad_x.values();
    once();
    EXPECT_TRUE(test::same_bits(first_w, grad_w.values())) << "twice";
    EXPECT_TRUE(test::same_bits(first_b, grad_b.values())) << "twice";
    EXPECT_TRUE(test::same_bits(first_x, grad_x.values())) << "twice";
  };
  run(true, true, true);
  run(true, false, true);
  run(true, true, false);
  run(false, true, false);
}

TEST_P(LinearOps, agree_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 15, 16, 17, 31, 33, 129}) {
      for (const std::int64_t in : {1, 16, 17, 33, 65, 257}) {
        for (const std::int64_t out : {1, 7, 16, 17, 64, 65}) {
          check_linear<T>({rows, in, out}, margins[(rows + in + out) % 3], device());
        }
      }
    }
    check_linear<T>({20, 0, 5}, 0, device());
    check_linear<T>({20, 5, 0}, 0, device());
  });
}

/// As large as one launch takes them, and larger; the row of ones begins a tile of its own.
TEST_P(LinearOps, agree_where_the_cut_changes) {
  with_type_of(precision(), [&]<class T>() {
    for (const LayerShape& shape : {LayerShape{2708, 16, 7},
                                    {700, 65, 64},
                                    {5000, 127, 7},
                                    {4000, 128, 20},
                                    {32768, 16, 16},
                                    {32769, 16, 16},
                                    {19717, 26, 3}}) {
      check_linear<T>(shape, 0, device());
      check_linear<T>(shape, 3, device());
    }
  });
}

/// The gradient of what ReLU was given, and the sums of its columns, while it is written.
template <class T>
void check_before_relu(const LayerShape& shape, std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message()
               << shape.rows << " x " << shape.in << " -> " << shape.out << " margin " << margin);
  auto x = normal_matrix<T>(shape.rows, shape.in, 1);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (static_cast<float>(x.data()[i]) < 0) x.data()[i] = static_cast<T>(0.0f);
  }
  const auto weight = normal_matrix<T>(shape.out, shape.in, 2);
  const auto slopes = normal_matrix<T>(shape.rows, shape.out, 4);
  DeviceMatrix<T> from(x, device, margin), w(weight, device, margin);
  DeviceMatrix<T> grad_y(slopes, device, margin);
  Expected of_x(shape.rows, shape.in), of_weight(shape.out, shape.in);
  of_weight.multiply(yes, no, to_double(slopes), to_double(x));
  of_x.multiply(no, no, to_double(slopes), to_double(weight));
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.in; ++j) {
      if (static_cast<float>(x(i, j)) > 0) continue;
      of_x.values(i, j) = 0;
      of_x.magnitude(i, j) = 0;
    }
  }
  for (const bool with_relu : {false, true}) {
    DeviceMatrix<T> grad_w(shape.out, shape.in, device, margin), sums(1, shape.in, device, 0);
    DeviceMatrix<T> grad_x(shape.rows, shape.in, device, margin);
    LinearSurroundings around;
    around.before_relu = with_relu;
    around.grad_x_sums = sums;
    const auto once = [&] {
      linear_backward(from, w, grad_y, grad_w, {}, grad_x, device, {}, test::workspace_on(device),
                      Precision::fp32, around);
    };
    once();
    expect_agreement("grad_weight", grad_w, of_weight);
    if (with_relu) expect_agreement("grad_x", grad_x, of_x);
    // The sums are those of what was written.
    const Matrix<T> written = grad_x.values();
    Expected of_sums(1, shape.in);
    of_sums.multiply(no, no, Matrix<double>(1, shape.rows, 1.0), to_double(written));
    expect_agreement("sums", sums, of_sums);
    const Matrix<T> first_sums = sums.values();
    once();
    EXPECT_TRUE(test::same_bits(first_sums, sums.values())) << "twice";
    EXPECT_TRUE(test::same_bits(written, grad_x.values())) << "twice";
  }
}

TEST_P(LinearOps, go_on_before_relu_and_sum_columns) {
  with_type_of(precision(), [&]<class T>() {
    for (const LayerShape& shape : {LayerShape{1, 1, 1},
                                    {2708, 16, 7},
                                    {129, 17, 3},
                                    {700, 65, 64},
                                    {5000, 127, 7},
                                    {19717, 16, 3},
                                    {32769, 16, 16}}) {
      check_before_relu<T>(shape, 0, device());
      check_before_relu<T>(shape, 3, device());
    }
  });
}

/// Numbers that the planes of tensor cores cannot hold come out as plain sums give them.
TEST_P(LinearOps, pass_on_what_is_not_finite) {
  with_type_of(precision(), [&]<class T>() {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      auto slopes = normal_matrix<T>(200, 5, 4);
      slopes(150, 2) = static_cast<T>(bad);
      DeviceMatrix<T> x(Matrix<T>(200, 9, static_cast<T>(1.0f)), device()),
          grad_y(slopes, device());
      DeviceMatrix<T> weight(Matrix<T>(5, 9, static_cast<T>(1.0f)), device());
      DeviceMatrix<T> grad_w(5, 9, device()), grad_b(1, 5, device(), 0), grad_x(200, 9, device());
      linear_backward(x, weight, grad_y, grad_w, grad_b, grad_x, device(), {},
                      test::workspace_on(device()));
      const Matrix<T> of_w = grad_w.values(), of_b = grad_b.values(), of_x = grad_x.values();
      const auto finite = [](T value) { return std::isfinite(static_cast<double>(value)); };
      for (std::int64_t i = 0; i < of_w.size(); ++i) EXPECT_EQ(finite(of_w.data()[i]), i / 9 != 2);
      for (std::int64_t i = 0; i < of_b.size(); ++i) EXPECT_EQ(finite(of_b.data()[i]), i != 2);
      for (std::int64_t i = 0; i < of_x.size(); ++i)
        EXPECT_EQ(finite(of_x.data()[i]), i / 9 != 150);
    }
  });
}

TEST(LinearErrors, say_what_does_not_fit) {
  Matrix<float> x(4, 3, 0.0f), weight(2, 3, 0.0f), bias(1, 3, 0.0f), y(4, 2, 0.0f);
  Matrix<float> grad_x(4, 3, 0.0f);
  EXPECT_THROW(linear(x, weight, bias, y), Error);
  EXPECT_THROW(linear(x, y, {}, y), Error);
  EXPECT_THROW(linear_backward(x, {}, y, {}, {}, grad_x), Error);
  EXPECT_THROW(linear_backward(x, weight, y, {}, {}, x), Error);
  LinearSurroundings around;
  around.before_relu = true;
  EXPECT_THROW(linear_backward(x, weight, y, {}, {}, {}, {}, {}, nullptr, Precision::fp32, around),
               Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, LinearOps, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
