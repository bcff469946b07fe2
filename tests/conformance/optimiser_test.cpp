// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "ops/optimiser/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_shapes.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/optimiser.hpp"

/// Steps of optimisers on every device against the reference.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

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
