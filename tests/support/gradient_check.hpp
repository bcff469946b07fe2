// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/build.hpp"
#include "tessera/nn/layer.hpp"

/// Gradients of layers against central differences, in double.
namespace tessera::test {

inline step::Placement double_placement() {
  step::Placement placement;
  placement.precision = Precision::fp64;
  return placement;
}

inline step::Tensor normal_tensor(std::int64_t rows, std::int64_t cols, std::uint64_t seed,
                                  step::Placement placement = double_placement()) {
  const Random random(seed);
  Matrix<double> values(rows, cols);
  for (std::int64_t i = 0; i < values.size(); ++i) {
    values.data()[i] = random.normal(static_cast<std::uint64_t>(i));
  }
  step::Tensor tensor(placement);
  tensor.copy_from(values);
  return tensor;
}

/// Directed, with positive weights, self loops and some vertices without sources.
inline Graph weighted_graph(VertexId rows, VertexId cols, int draws, std::uint64_t seed) {
  const Random random(seed);
  std::vector<VertexId> row_ids, col_ids;
  std::vector<float> weights;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(draws); ++k) {
    const auto below = [&](std::uint64_t element, VertexId bound) {
      return static_cast<VertexId>(random.below(element, static_cast<std::uint64_t>(bound)));
    };
    row_ids.push_back(below(3 * k, std::max<VertexId>(rows - 2, 1)));
    col_ids.push_back(below(3 * k + 1, cols));
    weights.push_back(static_cast<float>(0.25 + random.uniform(3 * k + 2)));
  }
  return from_coo(rows, cols, row_ids, col_ids, weights, {.duplicates = Duplicates::first});
}

/// The gradient of sum(weights * output), where the weights are random and fixed.
class GradientCheck {
 public:
  using Forward = std::function<const step::Tensor&()>;

  GradientCheck(nn::Layer& layer, const step::Context& context, Forward forward)
      : layer_(layer), context_(context), forward_(std::move(forward)) {
    const step::Tensor& output = forward_();
    weights_ = normal_tensor(output.rows(), output.cols(), 99);
  }

  /// Runs backward once; returns the gradient of the (source) input.
  step::Tensor* backward() {
    forward_();
    step::Tensor grad(double_placement());
    grad.copy_from(weights_);
    grad_output_ = std::move(grad);
    return layer_.backward(grad_output_, context_);
  }

  void expect_parameter_gradients(std::int64_t most = 60) {
    for (const auto& [path, parameter] : layer_.parameters()) {
      if (!parameter->trainable) continue;
      step::Tensor analytic(double_placement());
      analytic.copy_from(parameter->gradient);
      expect_gradient(path, parameter->value, analytic, most);
    }
  }

  /// At most `most` elements of `value` are moved, spread over all of it.
  void expect_gradient(const std::string& what, step::Tensor& value, const step::Tensor& analytic,
                       std::int64_t most = 60) {
    ASSERT_EQ(value.rows(), analytic.rows()) << what;
    ASSERT_EQ(value.cols(), analytic.cols()) << what;
    step::Tensor kept(double_placement());
    kept.copy_from(analytic);
    double* const elements = value.as<double>().data;
    const std::int64_t stride = std::max<std::int64_t>(1, value.size() / most);
    for (std::int64_t i = 0; i < value.size(); i += stride) {
      constexpr double step = 1e-6;
      const double before = elements[i];
      elements[i] = before + step;
      const double above = loss();
      elements[i] = before - step;
      const double below = loss();
      elements[i] = before;
      const double expected = (above - below) / (2 * step);
      const double actual = kept.as<double>().data[i];
      ASSERT_NEAR(actual, expected, 2e-6 * (1 + std::abs(expected))) << what << ", element " << i;
    }
  }

 private:
  double loss() {
    const step::Tensor& output = forward_();
    double sum = 0;
    for (std::int64_t i = 0; i < output.size(); ++i) {
      sum += output.as<double>().data[i] * weights_.as<double>().data[i];
    }
    return sum;
  }

  nn::Layer& layer_;
  step::Context context_;
  Forward forward_;
  step::Tensor weights_;
  step::Tensor grad_output_;
};

}  // namespace tessera::test
