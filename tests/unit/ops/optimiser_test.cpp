// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/optimiser.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"

#include "ops/optimiser/reference.hpp"
#include "support/errors.hpp"
#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::copy_of;
using test::normal_matrix;
using test::to_double;

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;

template <class T>
class Optimiser : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(0); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Optimiser, Types);

OptimiserOptions sgd(double momentum, double weight_decay) {
  OptimiserOptions options;
  options.kind = OptimiserKind::sgd;
  options.learning_rate = 0.1;
  options.momentum = momentum;
  options.weight_decay = weight_decay;
  return options;
}

OptimiserOptions decayed(OptimiserKind kind) {
  OptimiserOptions options;
  options.kind = kind;
  options.learning_rate = 0.05;
  options.beta1 = 0.8;
  options.beta2 = 0.95;
  options.epsilon = 1e-6;
  options.weight_decay = 0.02;
  return options;
}

struct Known {
  OptimiserOptions options;
  std::array<double, 4> after_three_steps;
};

// Computed with PyTorch 2.10 in float64, from (0.5, -1.25, 2, 0) with the gradients
// (0.1 t, -0.2, 0.3 / t, -0.05 t^2) at t = 1, 2, 3.
const Known known[] = {
    {sgd(0, 0), {0.44, -1.19, 1.945, 0.07}},
    {sgd(0, 0.01), {0.4385414895, -1.18631372875, 1.939080968, 0.069970005}},
    {sgd(0.9, 0.01), {0.4021553895, -1.13088947875, 1.869118568, 0.096511005}},
    {OptimiserOptions(), {0.470768169554484, -1.2200000015, 1.97194661948716, 0.0274980188105821}},
    {decayed(OptimiserKind::adam),
     {0.351752805810285, -1.10003594672926, 1.85890082498344, 0.140348917805062}},
    {decayed(OptimiserKind::adamw),
     {0.35084247887409, -1.0964044479965, 1.85562638600492, 0.140174096253067}},
};

TYPED_TEST(Optimiser, TakesTheStepsOfPyTorch) {
  using T = TypeParam;
  for (const Known& one : known) {
    SCOPED_TRACE(testing::Message()
                 << "kind " << static_cast<int>(one.options.kind) << " momentum "
                 << one.options.momentum << " decay " << one.options.weight_decay);
    Matrix<T> parameter(1, 4), gradient(1, 4), first(1, 4, T{0}), second(1, 4, T{0});
    const double start[] = {0.5, -1.25, 2, 0};
    for (std::int64_t j = 0; j < 4; ++j) parameter(0, j) = static_cast<T>(start[j]);
    for (int t = 1; t <= 3; ++t) {
      const double values[] = {0.1 * t, -0.2, 0.3 / t, -0.05 * t * t};
      for (std::int64_t j = 0; j < 4; ++j) gradient(0, j) = static_cast<T>(values[j]);
      optimiser_step(one.options, t, gradient, parameter, first, second);
    }
    for (std::int64_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(static_cast<double>(parameter(0, j)),
                  one.after_three_steps[static_cast<std::size_t>(j)], tolerance<T>);
    }
  }
}

TYPED_TEST(Optimiser, AgreesWithTheReference) {
  using T = TypeParam;
  for (const Known& one : known) {
    for (const std::int64_t rows : {0, 1, 15, 33}) {
      for (const std::int64_t cols : {1, 16, 257}) {
        SCOPED_TRACE(testing::Message()
                     << rows << " x " << cols << " kind " << static_cast<int>(one.options.kind));
        const auto start = normal_matrix<T>(rows, cols, 1);
        const auto gradient = normal_matrix<T>(rows, cols, 2);
        auto parameter = copy_of(start);
        auto expected = to_double(start);
        test::Padded<T> strided(start);
        Matrix<T> first(rows, cols, T{0}), second(rows, cols, T{0});
        Matrix<T> other_first(rows, cols, T{0}), other_second(rows, cols, T{0});
        Matrix<double> first_expected(rows, cols, 0.0), second_expected(rows, cols, 0.0);
        for (int step = 1; step <= 3; ++step) {
          optimiser_step(one.options, step, gradient, parameter, first, second);
          optimiser_step(one.options, step, gradient, strided.view(), other_first, other_second);
          reference::optimiser_step(one.options, step, to_double(gradient), expected,
                                    first_expected, second_expected);
        }
        EXPECT_LE(test::largest_difference(parameter, expected), tolerance<T>);
        EXPECT_LE(test::largest_difference(strided.view(), to_double(parameter)), 0);
        EXPECT_TRUE(strided.margins_intact());
      }
    }
  }
}

TYPED_TEST(Optimiser, GivesTheSameBitsForAnyNumberOfThreads) {
  using T = TypeParam;
  const auto gradient = normal_matrix<T>(700, 150, 2);
  Matrix<T> result;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    auto parameter = normal_matrix<T>(700, 150, 1);
    Matrix<T> first(700, 150, T{0}), second(700, 150, T{0});
    optimiser_step({}, 1, gradient, parameter, first, second);
    EXPECT_TRUE(threads == 1 || test::same_bits(result, parameter));
    result = std::move(parameter);
  }
}

TEST(Optimiser, PlainDescentNeedsNoState) {
  Matrix<float> parameter(1, 2, 1.0f), gradient(1, 2, 0.5f);
  optimiser_step(sgd(0, 0), 1, gradient, parameter, {}, {});
  EXPECT_FLOAT_EQ(parameter(0, 0), 0.95f);
}

TEST(Optimiser, RejectsWrongArguments) {
  Matrix<float> parameter(1, 2, 1.0f), gradient(1, 2, 0.5f), narrow(1, 1, 0.0f);
  const auto problem = [&](const OptimiserOptions& options, std::int64_t step, Operand first) {
    return test::argument_problem(
        [&] { optimiser_step(options, step, gradient, parameter, first, {}); });
  };
  EXPECT_EQ(problem(sgd(0.9, 0), 1, {}), "optimiser_step: first is 0 x 0, expected 1 x 2");
  EXPECT_EQ(problem(sgd(0.9, 0), 1, narrow), "optimiser_step: first is 1 x 1, expected 1 x 2");
  EXPECT_EQ(problem(sgd(0.9, 0), 1, parameter),
            "optimiser_step: parameter shares memory with first; give it memory of its own");
  EXPECT_EQ(problem({}, 0, parameter), "optimiser_step: step is 0, steps count from 1");
  OptimiserOptions options;
  options.beta2 = 1;
  EXPECT_EQ(problem(options, 1, parameter),
            "optimiser_step: beta2 is 1, expected a number from 0 to below 1");
  options = sgd(0, 0);
  options.learning_rate = -1;
  EXPECT_EQ(problem(options, 1, {}),
            "optimiser_step: learning_rate is -1, expected a number from 0");
}

}  // namespace
}  // namespace tessera::ops
