// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deque>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "ops/activation/reference.hpp"
#include "ops/gemm/reference.hpp"
#include "ops/optimiser/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/gemm_check.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/optimiser.hpp"
#include "tessera/ops/unit_rows.hpp"

/// Dense ops of every device and precision against the references.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

/// Margins around a matrix: contiguous, rows off every boundary, rows on 16-byte boundaries.
constexpr std::int64_t margins[] = {0, 3, 8};
constexpr std::int64_t row_counts[] = {0, 1, 15, 17, 33, 300};
constexpr std::int64_t widths[] = {1, 7, 16, 33, 64, 257};

class Dense : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
};

TEST_P(Dense, gemm_agrees_with_the_reference) {
  const test::ProductShape shapes[] = {{1, 1, 1},     {15, 17, 16},  {33, 31, 7},  {17, 257, 33},
                                       {600, 7, 129}, {300, 64, 64}, {5, 3, 5000}, {0, 4, 3},
                                       {4, 0, 3},     {5, 6, 0}};
  with_type_of(precision(), [&]<class T>() {
    for (const test::ProductShape& shape : shapes) {
      for (const Transpose turn_a : {Transpose::no, Transpose::yes}) {
        for (const Transpose turn_b : {Transpose::no, Transpose::yes}) {
          test::check_gemm<T>(shape, turn_a, turn_b, {{0, 0}, {0.5, 3}}, device());
        }
      }
    }
  });
}

TEST_P(Dense, gemm_of_integers_is_exact_and_forgets_what_was_there) {
  with_type_of(precision(), [&]<class T>() {
    const auto of = [](float value) { return static_cast<T>(value); };
    for (const std::int64_t inner : {0, 4, 120}) {
      DeviceMatrix<T> a(Matrix<T>(9, inner, of(2)), device(), 0);
      DeviceMatrix<T> b(Matrix<T>(inner, 8, of(1)), device(), 0);
      DeviceMatrix<T> c(Matrix<T>(9, 8, of(std::numeric_limits<float>::quiet_NaN())), device());
      gemm(Transpose::no, Transpose::no, 1, a, b, 0, c, device(), {}, test::workspace_on(device()));
      const Matrix<T> product = c.values();
      for (const T value : product.span()) {
        EXPECT_EQ(static_cast<double>(value), 2.0 * static_cast<double>(inner));
      }
    }
  });
}

TEST(DenseOnGpu, gemm_of_16_bits_into_fp32) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  const auto a = normal_matrix<Bfloat16>(65, 40, 1);
  const auto b = normal_matrix<Bfloat16>(40, 24, 2);
  DeviceMatrix<Bfloat16> a_there(a, device), b_there(b, device);
  DeviceMatrix<float> c(65, 24, device);
  gemm(Transpose::no, Transpose::no, 1, a_there, b_there, 0, c, device, {},
       test::workspace_on(device));
  Matrix<double> expected(65, 24);
  reference::gemm(Transpose::no, Transpose::no, 1, to_double(a), to_double(b), 0, expected);
  expect_close("c", c.values(), expected, 2e-6, 30);
}

TEST(DenseOnGpu, refuses_fp64) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  Matrix<double> x(2, 2, default_memory(device));
  testing::expect_error(ErrorCode::invalid_argument, {"fill", "y is fp64", "fp32, bf16 or fp16"},
                        [&] { fill(x, 1, device); });
}

TEST_P(Dense, fill_copy_and_transpose_move_every_element) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : widths) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " margin " << margin);
          const auto x = normal_matrix<T>(rows, cols, 1);
          DeviceMatrix<T> there(x, device(), margin), copied(rows, cols, device(), margin);
          DeviceMatrix<T> turned(cols, rows, device(), margin);
          copy(there, copied, device());
          EXPECT_TRUE(test::same_bits(x, copied.values()));
          transpose(there, turned, device());
          const Matrix<T> result = turned.values();
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              ASSERT_EQ(static_cast<double>(result(j, i)), static_cast<double>(x(i, j)));
            }
          }
          fill(there, 2.5, device());
          const Matrix<T> filled = there.values();
          for (const T value : filled.span()) ASSERT_EQ(static_cast<double>(value), 2.5);
        }
      }
    }
  });
}

TEST_P(Dense, uploads_and_downloads_convert) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t margin : {0, 3}) {
      const auto wide = normal_matrix<double>(17, 5, 3);
      const auto stored = normal_matrix<T>(17, 5, 3);
      DeviceMatrix<T> there(17, 5, device(), margin);
      upload(wide, there, device());
      Matrix<double> back(17, 5);
      download(there, back, device());
      for (std::int64_t i = 0; i < back.size(); ++i) {
        EXPECT_EQ(back.data()[i], static_cast<double>(stored.data()[i]));
      }
      EXPECT_TRUE(test::same_bits(stored, there.values()));
    }
  });
}

TEST_P(Dense, add_scaled_and_its_learned_form) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t cols : widths) {
      for (const std::int64_t margin : margins) {
        SCOPED_TRACE(::testing::Message() << cols << " margin " << margin);
        const auto x = normal_matrix<T>(33, cols, 1);
        const auto y = normal_matrix<T>(33, cols, 2);
        const auto factor = normal_matrix<T>(1, 1, 4);
        const Matrix<T> unknown(33, cols, static_cast<T>(std::nanf("")));
        DeviceMatrix<T> from(x, device(), margin), to(y, device(), margin);
        DeviceMatrix<T> fresh(unknown, device(), margin), learned(factor, device(), 0);
        add_scaled(2, from, -3, to, device());
        add_scaled_by(learned, 1, from, 0, fresh, device());
        Matrix<double> expected(33, cols), expected_fresh(33, cols);
        for (std::int64_t i = 0; i < x.size(); ++i) {
          const auto value = static_cast<double>(x.data()[i]);
          expected.data()[i] = 2 * value - 3 * static_cast<double>(y.data()[i]);
          expected_fresh.data()[i] = (1 + static_cast<double>(factor(0, 0))) * value;
        }
        expect_close("add_scaled", to.values(), expected, 1e-6);
        expect_close("add_scaled_by", fresh.values(), expected_fresh, 1e-6);
        add_scaled(0.5, from, 0, from, device());
        EXPECT_EQ(static_cast<double>(from.values()(0, 0)), 0.5 * static_cast<double>(x(0, 0)));
      }
    }
  });
}

TEST_P(Dense, scale_rows_rounds_once) {
  with_type_of(precision(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      for (const std::int64_t cols : {1, 7, 16, 33, 41, 64, 257}) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << cols << " margin " << margin);
          const auto x = normal_matrix<float>(37, cols, 1);
          const auto narrow = normal_matrix<T>(37, cols, 1);
          const auto factors = normal_matrix<float>(37, 1, 2);
          DeviceMatrix<float> from(x, device(), margin), scale(factors, device(), 0);
          DeviceMatrix<T> to(37, cols, device(), margin), same(narrow, device(), margin);
          scale_rows(from, scale, to, device());
          scale_rows(same, scale, same, device());
          const Matrix<T> result = to.values(), in_place = same.values();
          for (std::int64_t i = 0; i < 37; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              ASSERT_EQ(static_cast<float>(result(i, j)),
                        static_cast<float>(static_cast<T>(factors(i, 0) * x(i, j))));
              const float product = factors(i, 0) * static_cast<float>(narrow(i, j));
              ASSERT_EQ(static_cast<float>(in_place(i, j)),
                        static_cast<float>(static_cast<T>(product)));
            }
          }
        }
      }
    }
  });
}

TEST_P(Dense, dot_adds_all_products) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 17, 5000}) {
      for (const std::int64_t margin : margins) {
        const auto x = normal_matrix<T>(rows, 16, 1);
        const auto y = normal_matrix<T>(rows, 16, 2);
        DeviceMatrix<T> a(x, device(), margin), b(y, device(), margin), sum(1, 1, device(), 0);
        dot(a, b, sum, device(), {}, test::workspace_on(device()));
        Matrix<double> expected(1, 1, 0.0);
        for (std::int64_t i = 0; i < x.size(); ++i) {
          expected(0, 0) += static_cast<double>(x.data()[i]) * static_cast<double>(y.data()[i]);
        }
        expect_close("sum", sum.values(), expected, 1e-6);
      }
    }
  });
}

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

TEST_P(Dense, activation_agrees_with_the_reference) {
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
TEST_P(Dense, dropout_falls_on_the_same_elements_everywhere) {
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

TEST_P(Dense, activations_pass_on_what_is_not_finite) {
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

TEST_P(Dense, row_normalise_agrees_with_the_reference) {
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

TEST_P(Dense, unit_rows_agree_with_the_reference) {
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

INSTANTIATE_TEST_SUITE_P(Backends, Dense, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

class Steps : public ::testing::TestWithParam<test::DenseBackend> {};

TEST_P(Steps, optimisers_agree_with_the_reference) {
  OptimiserOptions momentum;
  momentum.kind = OptimiserKind::sgd;
  momentum.momentum = 0.9;
  momentum.weight_decay = 0.01;
  OptimiserOptions plain = momentum;
  plain.momentum = 0;
  OptimiserOptions adam;
  adam.weight_decay = 0.02;
  OptimiserOptions adamw = adam;
  adamw.kind = OptimiserKind::adamw;
  adamw.beta1 = 0;
  const Device device = GetParam().device;
  with_type_of(GetParam().precision, [&]<class T>() {
    for (const OptimiserOptions& options : {plain, momentum, adam, adamw}) {
      for (const std::int64_t cols : {1, 16, 257}) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(options.kind) << ", "
                                            << cols << " columns, margin " << margin);
          const auto start = normal_matrix<T>(15, cols, 1);
          const auto slopes = normal_matrix<T>(15, cols, 2);
          const Matrix<T> zeros(15, cols, static_cast<T>(0.0f));
          DeviceMatrix<T> gradient(slopes, device, margin), parameter(start, device, margin);
          DeviceMatrix<T> first(zeros, device, margin), second(zeros, device, margin);
          DeviceMatrix<T> timed(start, device, 0), m(zeros, device, 0), v(zeros, device, 0);
          DeviceMatrix<T> dense_slopes(slopes, device, 0);
          Matrix<double> expected = to_double(start), m_expected = to_double(zeros);
          Matrix<double> v_expected = to_double(zeros);
          OptimiserOptions halved = options;
          halved.learning_rate *= 0.5;
          // More than a kernel takes at once, one of them empty; one without decay.
          std::deque<DeviceMatrix<T>> others;
          std::vector<OptimiserTarget> targets = {{}, {dense_slopes, timed, m, v}};
          for (int i = 0; i < 30; ++i) {
            auto& slope = others.emplace_back(slopes, device, 3);
            auto& value = others.emplace_back(start, device, i % 4);
            auto& of_first = others.emplace_back(zeros, device, 0);
            auto& of_second = others.emplace_back(zeros, device, 8);
            targets.push_back({slope, value, of_first, of_second, i < 29 ? 1.0 : 0.0});
          }
          const StepClock clock{0, 0.5};
          Buffer<StepClock> there(1, default_memory(device));
          copy_bytes(there.data(), &clock, sizeof(clock), device);
          Buffer<std::uint32_t> counter(1, default_memory(device));
          fill_zero(counter.data(), sizeof(std::uint32_t), device);
          for (int step = 1; step <= 3; ++step) {
            optimiser_step(halved, step, gradient, parameter, first, second, device);
            if (step == 1) {
              optimiser_step(options, there.data(), targets, device);
              advance(there.data(), device);
            } else {
              step_and_advance(options, there.data(), counter.data(), targets, device);
            }
            reference::optimiser_step(halved, step, to_double(slopes), expected, m_expected,
                                      v_expected);
          }
          expect_close("parameter", parameter.values(), expected, 2e-6);
          expect_close("by a clock", timed.values(), expected, 2e-6);
          expect_close("the 29th", others[28 * 4 + 1].values(), expected, 2e-6);
          if (cols > 1) {
            EXPECT_NE(to_double(others[29 * 4 + 1].values())(3, 1), expected(3, 1)) << "decay";
          }
          StepClock now;
          copy_bytes(&now, there.data(), sizeof(now), device);
          EXPECT_EQ(now.step, 3);
          step_and_advance(options, there.data(), counter.data(), {}, device);
          copy_bytes(&now, there.data(), sizeof(now), device);
          EXPECT_EQ(now.step, 4) << "without parameters";
        }
      }
    }
  });
}

/// bf16 beside fp32: the step is that of the same gradient in fp32, and the copy is its rounding.
TEST_P(Steps, gradients_and_copies_may_have_16_bits) {
  if (GetParam().precision != Precision::fp32) GTEST_SKIP() << "fp32 alone has copies of 16 bits";
  const Device device = GetParam().device;
  OptimiserOptions sgd;
  sgd.kind = OptimiserKind::sgd;
  for (const OptimiserOptions& options : {sgd, OptimiserOptions{}}) {
    for (const std::int64_t cols : {1, 16, 257}) {
      for (const std::int64_t margin : margins) {
        SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(options.kind) << ", "
                                          << cols << " columns, margin " << margin);
        const auto start = normal_matrix<float>(15, cols, 1);
        const auto slopes = normal_matrix<Bfloat16>(15, cols, 2);
        Matrix<float> wide_slopes(15, cols);
        std::copy(slopes.span().begin(), slopes.span().end(), wide_slopes.span().begin());
        const Matrix<float> zeros(15, cols, 0.0f);
        DeviceMatrix<float> wide_gradient(wide_slopes, device, margin);
        DeviceMatrix<float> expected(start, device, margin), parameter(start, device, margin);
        DeviceMatrix<float> m(zeros, device, 0), v(zeros, device, 0);
        DeviceMatrix<float> m_expected(zeros, device, 0), v_expected(zeros, device, 0);
        DeviceMatrix<Bfloat16> gradient(slopes, device, margin), rounded(15, cols, device, margin);
        const StepClock clock{};
        Buffer<StepClock> there(1, default_memory(device));
        copy_bytes(there.data(), &clock, sizeof(clock), device);
        const std::vector<OptimiserTarget> wide = {
            {wide_gradient, expected, m_expected, v_expected}};
        const std::vector<OptimiserTarget> narrow = {{gradient, parameter, m, v, 1.0, rounded}};
        optimiser_step(options, there.data(), wide, device);
        optimiser_step(options, there.data(), narrow, device);
        const Matrix<float> result = parameter.values();
        EXPECT_TRUE(test::same_bits(result, expected.values()));
        const Matrix<Bfloat16> copy = rounded.values();
        for (std::int64_t i = 0; i < result.size(); ++i) {
          ASSERT_EQ(copy.data()[i].bits, Bfloat16(result.data()[i]).bits) << i;
        }
      }
    }
  }
}

/// A transposed gradient, and a transposed copy: the step is the same.
TEST_P(Steps, gradients_and_copies_may_be_transposed) {
  const Device device = GetParam().device;
  const auto turned_of = []<class T>(const Matrix<T>& matrix) {
    Matrix<T> turned(matrix.cols(), matrix.rows());
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
      for (std::int64_t j = 0; j < matrix.cols(); ++j) turned(j, i) = matrix(i, j);
    }
    return turned;
  };
  OptimiserOptions sgd;
  sgd.kind = OptimiserKind::sgd;
  const StepClock clock{};
  Buffer<StepClock> there(1, default_memory(device));
  copy_bytes(there.data(), &clock, sizeof(clock), device);
  // `type` is that of the gradient and of the copies.
  const auto check = [&]<class T, class G>(const OptimiserOptions& options, std::int64_t rows,
                                           std::int64_t cols, std::int64_t margin, T, G) {
    SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(options.kind) << ", " << rows
                                      << " x " << cols << ", margin " << margin);
    const auto start = normal_matrix<T>(rows, cols, 1);
    const auto slopes = normal_matrix<G>(rows, cols, 2);
    const Matrix<T> zeros(rows, cols, static_cast<T>(0.0f));
    DeviceMatrix<G> upright(slopes, device, margin), gradient(turned_of(slopes), device, margin);
    DeviceMatrix<T> expected(start, device, margin), parameter(start, device, margin);
    DeviceMatrix<T> m(zeros, device, 0), v(zeros, device, 0);
    DeviceMatrix<T> m_expected(zeros, device, 0), v_expected(zeros, device, 0);
    DeviceMatrix<G> turned(cols, rows, device, margin), rounded(rows, cols, device, margin);
    OptimiserTarget target{gradient, parameter, m, v, 1.0, {}, turned, true};
    if (!std::is_same_v<T, G>) target.rounded = rounded;
    const OptimiserTarget plain{upright, expected, m_expected, v_expected};
    optimiser_step(options, there.data(), {&plain, 1}, device);
    optimiser_step(options, there.data(), {&target, 1}, device);
    const Matrix<T> result = parameter.values();
    EXPECT_TRUE(test::same_bits(result, expected.values()));
    const Matrix<G> copy = turned_of(turned.values());
    for (std::int64_t i = 0; i < result.size(); ++i) {
      ASSERT_EQ(static_cast<double>(copy.data()[i]),
                static_cast<double>(static_cast<G>(result.data()[i])))
          << i;
    }
  };
  with_type_of(GetParam().precision, [&]<class T>() {
    for (const OptimiserOptions& options : {sgd, OptimiserOptions{}}) {
      for (const std::int64_t rows : {1, 15, 16, 70}) {
        for (const std::int64_t cols : {1, 16, 33, 257}) {
          for (const std::int64_t margin : margins) {
            check(options, rows, cols, margin, T{}, T{});
            if constexpr (std::is_same_v<T, float>) {
              check(options, rows, cols, margin, T{}, Bfloat16{});
            }
          }
        }
      }
    }
  });
}

TEST(StepErrors, transposed_shapes_are_looked_at) {
  Matrix<float> parameter(2, 3, 0.0f), gradient(2, 3, 0.0f), copy(2, 3, 0.0f);
  OptimiserOptions sgd;
  sgd.kind = OptimiserKind::sgd;
  const StepClock clock{};
  OptimiserTarget target{gradient, parameter};
  target.gradient_is_turned = true;
  testing::expect_error(ErrorCode::invalid_argument, {"gradient (transposed)", "2 x 3", "3 x 2"},
                        [&] {
                          optimiser_step(sgd, &clock, {&target, 1});
                        });
  target.gradient_is_turned = false;
  target.turned = copy;
  testing::expect_error(ErrorCode::invalid_argument, {"turned", "2 x 3", "3 x 2"}, [&] {
    optimiser_step(sgd, &clock, {&target, 1});
  });
}

TEST(StepErrors, only_fp32_has_copies_of_16_bits) {
  Matrix<double> wide(2, 2, 0.0), of_wide(2, 2, 0.0);
  Matrix<Bfloat16> narrow(2, 2);
  OptimiserOptions sgd;
  sgd.kind = OptimiserKind::sgd;
  testing::expect_error(ErrorCode::invalid_argument, {"gradient is bf16", "expected fp64"},
                        [&] { optimiser_step(sgd, 1, narrow, wide, {}, {}); });
  testing::expect_error(ErrorCode::invalid_argument, {"parameter is bf16", "keep"},
                        [&] { optimiser_step(sgd, 1, narrow, narrow, {}, {}); });
}

INSTANTIATE_TEST_SUITE_P(Backends, Steps, ::testing::ValuesIn(test::wide_dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
