// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/optimiser.hpp"

#include <gtest/gtest.h>

#include "support/matrices.hpp"
#include "tessera/nn/dense.hpp"

namespace tessera::train {
namespace {

/// The rate halves after the second step; then the count is set back.
TEST(Optimiser, steps_as_its_clock_says) {
  nn::LinearOptions shape;
  shape.in = 3;
  shape.out = 2;
  nn::Linear layer(shape);
  layer.reset_parameters(1);
  ops::OptimiserOptions options;
  options.weight_decay = 0.1;
  step::Parameter& weight = *layer.parameters()[0].parameter;
  weight.decay = 0.5;
  Optimiser optimiser(layer, options);

  Matrix<float> expected(weight.value.rows(), weight.value.cols());
  const auto start = weight.value.as<float>();
  for (std::int64_t i = 0; i < expected.size(); ++i) expected.data()[i] = start.data[i];
  Matrix<float> first(expected.rows(), expected.cols(), 0.0f);
  Matrix<float> second(expected.rows(), expected.cols(), 0.0f);
  ops::OptimiserOptions own = options;
  own.weight_decay = 0.05;
  struct Step {
    std::int64_t done;
    double rate_factor;
  };
  for (const Step& step : {Step{0, 1}, Step{1, 1}, Step{2, 0.5}, Step{1, 0.5}}) {
    SCOPED_TRACE(::testing::Message() << step.done << " steps at " << step.rate_factor);
    if (optimiser.steps() != step.done) optimiser.set_steps(step.done);
    optimiser.set_rate_factor(step.rate_factor);
    weight.gradient.fill(static_cast<double>(step.done) + 0.5);
    const Matrix<float> gradient(expected.rows(), expected.cols(),
                                 static_cast<float>(step.done) + 0.5f);
    optimiser.step();
    own.learning_rate = options.learning_rate * step.rate_factor;
    ops::optimiser_step(own, step.done + 1, gradient, expected, first, second);
    EXPECT_EQ(optimiser.steps(), step.done + 1);
    EXPECT_EQ(optimiser.clock()->step, step.done + 1);
    const auto got = weight.value.as<float>();
    for (std::int64_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got.data[i], expected.data()[i]);
  }
}

TEST(Optimiser, lists_its_moments) {
  nn::LinearOptions shape;
  shape.in = 3;
  shape.out = 2;
  nn::Linear layer(shape);
  ops::OptimiserOptions plain;
  plain.kind = ops::OptimiserKind::sgd;
  EXPECT_TRUE(Optimiser(layer, plain).state().empty());
  Optimiser adam(layer, {});
  ASSERT_EQ(adam.state().size(), 4u);
  EXPECT_EQ(adam.state()[0].path, "first.weight");
}

}  // namespace
}  // namespace tessera::train
