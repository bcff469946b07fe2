// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deque>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "ops/optimiser/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_workspace.hpp"
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

/// Gradients of more parameters than a kernel takes at once, one of them empty, some with gaps.
TEST_P(Steps, gradients_are_clipped_by_the_norm_of_all) {
  const Device device = GetParam().device;
  with_type_of(GetParam().precision, [&]<class T>() {
    for (const std::int64_t count : {0, 1, 3, 50}) {
      SCOPED_TRACE(count);
      std::deque<DeviceMatrix<T>> slopes;
      std::vector<OptimiserTarget> targets = {{}};
      double squares = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto values = normal_matrix<T>(1 + 7 * i, i % 2 == 0 ? 33 : 1, 5);
        for (const T value : values.span()) squares += std::pow(static_cast<double>(value), 2);
        slopes.emplace_back(values, device, i % 3);
        targets.push_back({slopes.back(), {}});
      }
      const double norm = std::sqrt(squares);
      Buffer<double> there(1, default_memory(device));
      const auto factor_for = [&](double most) {
        double factor = -1;
        clip_gradients(most, there.data(), targets, device, {}, test::workspace_on(device));
        copy_bytes(&factor, there.data(), sizeof(factor), device);
        return factor;
      };
      EXPECT_EQ(factor_for(norm * 1.001 + 1), 1);
      if (count > 0) {
        EXPECT_NEAR(factor_for(0.25 * norm), 0.25, 1e-9);
      }
    }
  });
}

TEST_P(Steps, steps_take_the_factor_of_gradients) {
  const Device device = GetParam().device;
  with_type_of(GetParam().precision, [&]<class T>() {
    OptimiserOptions sgd;
    sgd.kind = OptimiserKind::sgd;
    sgd.weight_decay = 0.1;
    OptimiserOptions adam = sgd;
    adam.kind = OptimiserKind::adam;
    for (const OptimiserOptions& options : {sgd, adam}) {
      const auto start = normal_matrix<T>(15, 33, 1);
      auto slopes = normal_matrix<T>(15, 33, 2);
      const Matrix<T> zeros(15, 33, static_cast<T>(0.0f));
      DeviceMatrix<T> gradient(slopes, device, 0), parameter(start, device, 0);
      DeviceMatrix<T> first(zeros, device, 0), second(zeros, device, 0);
      Matrix<double> expected = to_double(start), m(15, 33, 0.0), v(15, 33, 0.0);
      Matrix<double> quarter = to_double(slopes);
      for (double& value : quarter.span()) value *= 0.25;
      const StepClock clock;
      Buffer<StepClock> there(1, default_memory(device));
      copy_bytes(there.data(), &clock, sizeof(clock), device);
      Buffer<std::uint32_t> counter(1, default_memory(device));
      fill_zero(counter.data(), sizeof(std::uint32_t), device);
      const double fourth = 0.25;
      Buffer<double> factor(1, default_memory(device));
      copy_bytes(factor.data(), &fourth, sizeof(fourth), device);
      const OptimiserTarget target{gradient, parameter, first, second};
      step_and_advance(options, there.data(), counter.data(), {&target, 1}, device, {},
                       factor.data());
      reference::optimiser_step(options, 1, quarter, expected, m, v);
      expect_close("parameter", parameter.values(), expected, 2e-6);
    }
  });
}

/// Against the sum of all steps, weighed one by one.
TEST_P(Steps, means_over_steps_weigh_the_newest_most) {
  const Device device = GetParam().device;
  with_type_of(GetParam().precision, [&]<class T>() {
    for (const double decay : {0.5, 0.99, 1.0}) {
      for (const std::int64_t margin : margins) {
        SCOPED_TRACE(::testing::Message() << "decay " << decay << ", margin " << margin);
        DeviceMatrix<T> mean(Matrix<T>(15, 33, static_cast<T>(0.0f)), device, margin);
        Matrix<double> sum(15, 33, 0.0);
        double weights = 0;
        Buffer<StepClock> there(1, default_memory(device));
        for (std::int64_t step = 1; step <= 5; ++step) {
          const auto values = normal_matrix<T>(15, 33, static_cast<std::uint64_t>(step));
          DeviceMatrix<T> now(values, device, margin);
          const StepClock clock{step};
          copy_bytes(there.data(), &clock, sizeof(clock), device);
          average(decay, there.data(), now, mean, device);
          const Matrix<double> wide = to_double(values);
          for (std::int64_t i = 0; i < sum.size(); ++i) {
            sum.data()[i] = decay * sum.data()[i] + wide.data()[i];
          }
          weights = decay * weights + 1;
        }
        for (double& value : sum.span()) value /= weights;
        expect_close("mean", mean.values(), sum, 2e-6);
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
