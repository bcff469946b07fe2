// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ops/activation/reference.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/unit_rows.hpp"

/// Activations, dropout and normalised rows on every device and in every precision against the
/// references.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::row_counts;
using test::to_double;
using test::widths;
using test::with_type_of;

class Activations : public test::DenseTest {};

ActivationOptions with(Activation activation, double dropout) {
  ActivationOptions options;
  options.activation = activation;
  options.slope = 0.2;
  options.alpha = 0.7;
  options.dropout = dropout;
  options.random = Random(5, 2, 9);
  return options;
}

template <class T>
void check_activation(std::int64_t rows, std::int64_t cols, const ActivationOptions& options,
                      bool with_bias, std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message()
               << rows << " x " << cols << " " << to_string(options.activation) << " dropout "
               << options.dropout << " bias " << with_bias << " margin " << margin);
  const auto x = normal_matrix<T>(rows, cols, 1);
  const auto bias = with_bias ? normal_matrix<T>(1, cols, 2) : Matrix<T>();
  const auto grad_y = normal_matrix<T>(rows, cols, 3);
  DeviceMatrix<T> x_there(x, device, margin), bias_there(bias, device, 0);
  DeviceMatrix<T> y(rows, cols, device, margin), grad_x(grad_y, device, margin);
  DeviceMatrix<T> grad_bias(1, cols, device, 0), alone(grad_y, device, margin);
  const ConstOperand bias_operand = with_bias ? ConstOperand(bias_there) : ConstOperand();
  bias_activation_dropout(x_there, bias_operand, options, y, device);
  // In place: grad_x begins as grad_y.
  bias_activation_dropout_backward(x_there, bias_operand, options, grad_x, grad_x, grad_bias,
                                   device, {}, test::workspace_on(device));
  bias_activation_dropout_backward(x_there, bias_operand, options, alone, alone, {}, device, {},
                                   test::workspace_on(device));

  Matrix<double> y_expected(rows, cols), grad_x_expected(rows, cols), grad_bias_expected(1, cols);
  const Matrix<double> bias_double = to_double(bias);
  reference::bias_activation_dropout(to_double(x), bias_double, options, y_expected);
  reference::bias_activation_dropout_backward(to_double(x), bias_double, options, to_double(grad_y),
                                              grad_x_expected, grad_bias_expected);
  expect_close("y", y.values(), y_expected, 1e-6);
  expect_close("grad_x", grad_x.values(), grad_x_expected, 1e-6);
  expect_close("grad_x alone", alone.values(), grad_x_expected, 1e-6);
  expect_close("grad_bias", grad_bias.values(), grad_bias_expected, 1e-6,
               1 + std::sqrt(static_cast<double>(rows)));
}

TEST_P(Activations, activation_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : widths) {
        for (const Activation activation :
             {Activation::none, Activation::relu, Activation::leaky_relu, Activation::elu}) {
          check_activation<T>(rows, cols, with(activation, 0), true, 8, device());
          check_activation<T>(rows, cols, with(activation, 0.4), cols % 2 == 0, 0, device());
        }
        check_activation<T>(rows, cols, with(Activation::relu, 0.5), true, 3, device());
      }
    }
    for (const std::int64_t rows : {511, 513, 2708, 8192, 8193}) {
      check_activation<T>(rows, 7, with(Activation::none, 0), true, 0, device());
      check_activation<T>(rows, 16, with(Activation::leaky_relu, 0), true, 8, device());
    }
    check_activation<T>(70000, 16, with(Activation::relu, 0.5), true, 0, device());
  });
}

/// Dropout alone leaves kept or dropped elements, which no rounding can blur.
TEST_P(Activations, dropout_falls_on_the_same_elements_everywhere) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t cols : {7, 16, 33}) {
      for (const std::int64_t margin : margins) {
        ActivationOptions options = with(Activation::none, 0.5);
        const Dropout expected{0.5, options.random.at_step(4000000000u)};
        // The clock takes the place of the step that the options name.
        const StepClock clock{4000000000, 1};
        Buffer<StepClock> there(1, default_memory(device()));
        copy_bytes(there.data(), &clock, sizeof(clock), device());
        options.clock = there.data();
        DeviceMatrix<T> x(Matrix<T>(50, cols, static_cast<T>(1.0f)), device(), margin);
        bias_activation_dropout(x, {}, options, x, device());
        const Matrix<T> got = x.values();
        for (std::int64_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(static_cast<double>(got.data()[i]),
                    expected.factor(static_cast<std::uint64_t>(i)));
        }
      }
    }
  });
}

TEST_P(Activations, activations_pass_on_what_is_not_finite) {
  with_type_of(precision(), [&]<class T>() {
    for (const Activation activation :
         {Activation::none, Activation::relu, Activation::leaky_relu, Activation::elu}) {
      SCOPED_TRACE(to_string(activation));
      Matrix<T> x(1, 3);
      const float infinity = std::numeric_limits<float>::infinity();
      x(0, 0) = static_cast<T>(std::nanf(""));
      x(0, 1) = static_cast<T>(infinity);
      x(0, 2) = static_cast<T>(-infinity);
      DeviceMatrix<T> from(x, device()), y(1, 3, device());
      bias_activation_dropout(from, {}, with(activation, 0), y, device());
      Matrix<double> expected(1, 3);
      reference::bias_activation_dropout(to_double(x), {}, with(activation, 0), expected);
      expect_close("y", y.values(), expected, 1e-6);
    }
  });
}

TEST_P(Activations, row_normalise_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : widths) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " margin " << margin);
          auto x = normal_matrix<T>(rows, cols, 1);
          // A row of zeros has no direction.
          if (rows > 2) std::fill_n(x.row(2), cols, static_cast<T>(0.0f));
          const auto grad_y = normal_matrix<T>(rows, cols, 2);
          DeviceMatrix<T> from(x, device(), margin), y(x, device(), margin);
          DeviceMatrix<T> grad_x(grad_y, device(), margin);
          row_normalise(y, y, 1e-12, device());
          row_normalise_backward(from, grad_x, grad_x, 1e-3, device());
          Matrix<double> y_expected(rows, cols), grad_x_expected(rows, cols);
          reference::row_normalise(to_double(x), 1e-12, y_expected);
          reference::row_normalise_backward(to_double(x), to_double(grad_y), 1e-3, grad_x_expected);
          expect_close("y", y.values(), y_expected, 1e-6);
          expect_close("grad_x", grad_x.values(), grad_x_expected, 1e-5);
        }
      }
    }
  });
}

TEST_P(Activations, unit_rows_agree_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : widths) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " margin " << margin);
          auto x = normal_matrix<T>(rows, cols, 1);
          if (rows > 2) std::fill_n(x.row(2), cols, static_cast<T>(0.0f));
          const auto of_unit = normal_matrix<T>(rows, cols, 2);
          const auto of_scaled = normal_matrix<T>(rows, cols, 3);
          const auto before = normal_matrix<T>(rows, cols, 4);
          const Matrix<T> learned(1, 1, static_cast<T>(1.5f));
          DeviceMatrix<T> from(x, device(), margin), unit(rows, cols, device(), margin);
          DeviceMatrix<T> scaled(rows, cols, device(), margin), factor(learned, device(), 0);
          DeviceMatrix<T> grad_unit(of_unit, device(), margin), grad_x(before, device(), margin);
          DeviceMatrix<T> grad_scaled(of_scaled, device(), margin);
          unit_rows(from, factor, unit, scaled, 1e-12, device());
          unit_rows_backward(from, factor, grad_unit, grad_scaled, grad_x, 1e-3, device());
          Matrix<double> expected(rows, cols), through(rows, cols), slopes = to_double(of_unit);
          reference::row_normalise(to_double(x), 1e-12, expected);
          expect_close("unit", unit.values(), expected, 1e-6);
          const Matrix<double> rounded = to_double(unit.values());
          for (std::int64_t i = 0; i < expected.size(); ++i) {
            expected.data()[i] = 1.5 * rounded.data()[i];
            slopes.data()[i] += 1.5 * static_cast<double>(of_scaled.data()[i]);
          }
          expect_close("scaled", scaled.values(), expected, 1e-6);
          reference::row_normalise_backward(to_double(x), slopes, 1e-3, through);
          for (std::int64_t i = 0; i < through.size(); ++i) {
            through.data()[i] += static_cast<double>(before.data()[i]);
          }
          // Where the row has no direction, 1 / epsilon magnifies every rounding.
          if (rows > 2) {
            const Matrix<T> got = grad_x.values();
            for (std::int64_t j = 0; j < cols; ++j) {
              EXPECT_NEAR(static_cast<double>(got(2, j)), through(2, j),
                          0x1p-7 * (1 + std::abs(through(2, j))));
              through(2, j) = static_cast<double>(got(2, j));
            }
          }
          expect_close("grad_x", grad_x.values(), through, 1e-5, 8);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Activations, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
