// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/gaussian.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/finite_differences.hpp"
#include "support/random_coo.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/step/tensor.hpp"

namespace tessera::ops {
namespace {

constexpr std::uint64_t seed = 41;
const GaussianDraw draw{Random(seed, 6, 3)};

/// Means and logarithms of deviations, some of these above the highest that counts.
Matrix<double> distributions(std::int64_t rows, std::int64_t width) {
  const Random random(seed + 1);
  Matrix<double> x(rows, 2 * width);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.data()[i] = 0.7 * random.normal(static_cast<std::uint64_t>(i));
  }
  if (rows > 2) x(2, width) = most_log_deviation + 3;
  return x;
}

double log_deviation(const Matrix<double>& x, std::int64_t i, std::int64_t j) {
  return std::min(x(i, x.cols() / 2 + j), most_log_deviation);
}

double drawn(const Matrix<double>& x, const Random& random, std::int64_t i, std::int64_t j) {
  const std::int64_t width = x.cols() / 2;
  const double noise = random.normal(static_cast<std::uint64_t>(i * width + j));
  return x(i, j) + noise * std::exp(log_deviation(x, i, j));
}

/// As PyG's VGAE.kl_loss.
double divergence(const Matrix<double>& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    for (std::int64_t j = 0; j < x.cols() / 2; ++j) {
      const double logarithm = log_deviation(x, i, j);
      sum += 1 + 2 * logarithm - x(i, j) * x(i, j) - std::exp(2 * logarithm);
    }
  }
  return x.rows() == 0 ? 0 : -0.5 * sum / static_cast<double>(x.rows());
}

constexpr std::pair<std::int64_t, std::int64_t> shapes[] = {{0, 3}, {1, 1}, {15, 4}, {33, 7}};

TEST(Gaussian, draws_what_the_formula_says_at_every_step_of_a_clock) {
  for (const auto& [rows, width] : shapes) {
    const Matrix<double> x = distributions(rows, width);
    Matrix<double> y(rows, width), means(rows, width);
    StepClock clock;
    for (const std::int64_t step : {0, 5}) {
      clock.step = step;
      gaussian(x, {draw.random, &clock}, y);
      const Random random = draw.random.at_step(static_cast<std::uint32_t>(step));
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          const double expected = drawn(x, random, i, j);
          EXPECT_NEAR(y(i, j), expected, 1e-12 * std::max(1.0, std::abs(expected)));
        }
      }
    }
    gaussian_mean(x, means);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) EXPECT_EQ(means(i, j), x(i, j));
    }
  }
}

TEST(Gaussian, has_the_gradient_of_finite_differences) {
  constexpr double weight = 0.3;
  for (const auto& [rows, width] : shapes) {
    SCOPED_TRACE(rows);
    Matrix<double> x = distributions(rows, width);
    if (rows > 2) x(2, width) = 1;  // beside a clamp alone the scale of differences is their own
    const Matrix<double> weights = testing::integers<double>(rows, width, 3);
    Matrix<double> y(rows, width), gradient(rows, 2 * width);
    double value = 2;
    gaussian_backward(x, draw, weights, weight, gradient, &value);
    EXPECT_NEAR(value, 2 + weight * divergence(x), 1e-12);
    const auto loss = [&] {
      gaussian(x, draw, y);
      return testing::weighted_sum(y, weights) + weight * divergence(x);
    };
    EXPECT_EQ(testing::gradient_mismatch(x, gradient, loss), "");
  }
}

TEST(Gaussian, takes_large_logarithms_for_ten) {
  const Matrix<double> x = distributions(15, 4);
  Matrix<double> y(15, 4), gradient(15, 8);
  const Matrix<double> ones(15, 4, 1.0);
  double value = 0;
  gaussian(x, draw, y);
  gaussian_backward(x, draw, ones, 1, gradient, &value);
  EXPECT_NEAR(y(2, 0), drawn(x, draw.random, 2, 0), 1e-8);
  EXPECT_EQ(gradient(2, 4), 0);
  EXPECT_NEAR(value / divergence(x), 1, 1e-12);
}

TEST(Gaussian, has_the_same_bits_for_any_number_of_threads) {
  const Matrix<double> x = distributions(3000, 5);
  const Matrix<double> ones(3000, 5, 1.0);
  Matrix<double> y[2] = {Matrix<double>(3000, 5), Matrix<double>(3000, 5)};
  Matrix<double> gradient[2] = {Matrix<double>(3000, 10), Matrix<double>(3000, 10)};
  double values[2] = {};
  for (const int number : {0, 1}) {
    const testing::ThreadScope threads(number == 0 ? 1 : 4);
    gaussian(x, draw, y[number]);
    gaussian_backward(x, draw, ones, 1, gradient[number], &values[number]);
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_TRUE(std::equal(y[0].data(), y[0].data() + y[0].size(), y[1].data()));
  EXPECT_TRUE(
      std::equal(gradient[0].data(), gradient[0].data() + gradient[0].size(), gradient[1].data()));
}

TEST(Gaussian, draws_the_same_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device gpu{DeviceKind::cuda, 0};
  step::Placement placement{Precision::fp32, &default_memory(gpu)};
  const DenseWorkspace workspace(placement.place());
  for (const auto& [rows, width] : shapes) {
    const Matrix<double> x = distributions(rows, width);
    Matrix<float> narrow(rows, 2 * width);
    for (std::int64_t i = 0; i < x.size(); ++i) narrow.data()[i] = static_cast<float>(x.data()[i]);
    const Matrix<float> ones(rows, width, 1.0f);
    step::Tensor on_gpu(placement), arriving(placement), y(rows, width, placement),
        gradient(rows, 2 * width, placement);
    on_gpu.upload(narrow);
    arriving.upload(ones);
    Buffer<double> value(1, placement.place());
    double sum = 2;
    copy_bytes(value.data(), &sum, sizeof sum, gpu);
    gaussian(on_gpu, draw, y, gpu);
    gaussian_backward(on_gpu, draw, arriving, 0.3, gradient, value.data(), gpu, {}, &workspace);
    copy_bytes(&sum, value.data(), sizeof sum, gpu);
    Matrix<float> found(rows, width), here(rows, width), found_gradient(rows, 2 * width),
        gradient_here(rows, 2 * width);
    download(y, found, gpu);
    download(gradient, found_gradient, gpu);
    gaussian(narrow, draw, here);
    double sum_here = 2;
    gaussian_backward(narrow, draw, ones, 0.3, gradient_here, &sum_here);
    EXPECT_NEAR(sum, sum_here, 1e-9 * std::abs(sum_here));
    for (std::int64_t i = 0; i < found.size(); ++i) {
      EXPECT_FLOAT_EQ(found.data()[i], here.data()[i]);
    }
    for (std::int64_t i = 0; i < found_gradient.size(); ++i) {
      EXPECT_FLOAT_EQ(found_gradient.data()[i], gradient_here.data()[i]);
    }
  }
}

TEST(Gaussian, refuses_an_odd_number_of_columns_and_another_width) {
  const Matrix<float> odd(3, 5, 1.0f), even(3, 4, 1.0f);
  Matrix<float> y(3, 3);
  testing::expect_error(ErrorCode::invalid_argument, {"odd number of columns"},
                        [&] { gaussian(odd, draw, y); });
  testing::expect_error(ErrorCode::invalid_argument, {"y"}, [&] { gaussian(even, draw, y); });
}

}  // namespace
}  // namespace tessera::ops
