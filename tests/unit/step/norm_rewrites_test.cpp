// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/step_scene.hpp"

/// Rewrites around batch norm and dense products of many rows: each fires where it should and not
/// elsewhere, and the results are those without it.
namespace tessera {
namespace {

using step::Program;
using step::Value;
using test::StepScene;

constexpr std::int64_t many = 33000, few = 40;
constexpr step::ActivationKind relu{ops::Activation::relu};

std::int64_t times(const StepScene::Result& result, const std::string& name) {
  for (const step::Fired& one : result.fired) {
    if (one.name == name) return one.times;
  }
  return 0;
}

std::int64_t times(const std::string& name, std::int64_t rows, StepScene::Build build) {
  StepScene scene(rows, 8, std::move(build));
  return times(scene.run(), name);
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i]))) << i;
  }
}

void expect_same_without(const std::string& name, std::int64_t rows, StepScene::Build build) {
  const auto result = [&](std::vector<std::string> off) {
    StepScene scene(rows, 8, build);
    return scene.run({.off = std::move(off)});
  };
  const auto with = result({}), without = result({name});
  EXPECT_GT(times(with, name), 0) << with.program;
  EXPECT_EQ(times(without, name), 0);
  expect_near(with.output, without.output);
  expect_near(with.grad_x, without.grad_x);
  for (const auto& [parameter, gradient] : without.gradients) {
    SCOPED_TRACE(parameter);
    expect_near(with.gradients.at(parameter), gradient);
  }
}

Value weight(StepScene& scene, Program& p, const char* name, std::int64_t out, std::int64_t in) {
  return p.parameter(scene.parameter(name, out, in));
}

Value normed(StepScene& scene, Program& p, Value x, bool training = true) {
  const step::BatchNormValues values{weight(scene, p, "gamma", 1, 8),
                                     weight(scene, p, "beta", 1, 8),
                                     p.state("mean", scene.state("mean", 8, 0)),
                                     p.state("variance", scene.state("variance", 8, 1))};
  return step::batch_norm(p, x, values, {.training = training});
}

/// A perceptron with batch norm, as GIN has it.
StepScene::Build perceptron(std::int64_t outputs) {
  return [=](StepScene& scene, Program& p, Value x) {
    Value y = step::linear(p, step::unit_rows(p, x), weight(scene, p, "w", 8, 8));
    y = normed(scene, p, step::add_bias(p, y, weight(scene, p, "b", 1, 8)));
    return step::linear(p, step::activate(p, y, relu), weight(scene, p, "v", outputs, 8));
  };
}

TEST(NormRewrites, AddTheBiasBefore) {
  EXPECT_EQ(times("bias-in-norm", few, perceptron(3)), 1);
  expect_same_without("bias-in-norm", few, perceptron(3));
  const auto read_twice = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::add_bias(p, step::unit_rows(p, x), weight(scene, p, "b", 1, 8));
    return step::add(p, normed(scene, p, y), y);
  };
  EXPECT_EQ(times("bias-in-norm", few, read_twice), 0);
}

TEST(NormRewrites, DoWhatFollows) {
  EXPECT_EQ(times("finish-in-norm", few, perceptron(3)), 1);
  expect_same_without("finish-in-norm", few, perceptron(3));
  const auto read_twice = [](StepScene& scene, Program& p, Value x) {
    const Value y = normed(scene, p, step::unit_rows(p, x));
    return step::add(p, step::activate(p, y, relu), y);
  };
  EXPECT_EQ(times("finish-in-norm", few, read_twice), 0);
}

TEST(NormRewrites, FindMomentsInProductsOfManyRows) {
  EXPECT_EQ(times("moments-in-linear", many, perceptron(3)), 1);
  EXPECT_EQ(times("moments-in-linear", few, perceptron(3)), 0);
  expect_same_without("moments-in-linear", many, perceptron(3));
}

TEST(NormRewrites, NormaliseInProductsOfManyRows) {
  EXPECT_EQ(times("norm-in-linear", many, perceptron(3)), 1);
  EXPECT_EQ(times("norm-in-linear", few, perceptron(3)), 0);
  expect_same_without("norm-in-linear", many, perceptron(3));
  const auto read_twice = [](StepScene& scene, Program& p, Value x) {
    const Value y = normed(scene, p, step::unit_rows(p, x));
    return step::add(p, step::linear(p, y, weight(scene, p, "v", 8, 8)), y);
  };
  EXPECT_EQ(times("norm-in-linear", many, read_twice), 0);
}

TEST(NormRewrites, WriteNothingThatAProductNormalises) {
  const auto written = [&](std::vector<std::string> off) {
    StepScene scene(many, 8, perceptron(3));
    return scene.run({.off = std::move(off)}).unshared_bytes;
  };
  EXPECT_LE(written({}) + many * 7 * 8, written({"norm-in-linear"}));
}

TEST(ProductRewrites, LeaveGradientsOfFewFactors) {
  EXPECT_EQ(times("gradient-as-factors", many, perceptron(3)), 1);
  EXPECT_EQ(times("gradient-as-factors", many, perceptron(6)), 0);
  EXPECT_EQ(times("gradient-as-factors", few, perceptron(3)), 0);
  expect_same_without("gradient-as-factors", many, perceptron(3));
  const auto active_sums = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::aggregate(p, x, {step::gcn_adjacency});
    const Value active = step::activate(p, step::add_bias(p, y, weight(scene, p, "b", 1, 8)), relu);
    return step::linear(p, active, weight(scene, p, "v", 2, 8));
  };
  EXPECT_EQ(times("gradient-as-factors", many, active_sums), 1);
  expect_same_without("gradient-as-factors", many, active_sums);
}

Value activated(StepScene& scene, Program& p, Value x, const step::ActivationKind& kind) {
  const Value y = step::aggregate(p, x, {step::gcn_adjacency});
  return step::activate(p, step::add_bias(p, y, weight(scene, p, "b", 1, 8)), kind);
}

TEST(ProductRewrites, GoThroughTheReluBefore) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    return step::linear(p, activated(scene, p, x, relu), weight(scene, p, "v", 5, 8));
  };
  EXPECT_EQ(times("relu-in-linear-gradient", few, build), 1);
  expect_same_without("relu-in-linear-gradient", few, build);
  const auto other = [](StepScene& scene, Program& p, Value x) {
    return step::linear(p, activated(scene, p, x, {ops::Activation::leaky_relu}),
                        weight(scene, p, "v", 5, 8));
  };
  EXPECT_EQ(times("relu-in-linear-gradient", few, other), 0);
  const auto read_twice = [](StepScene& scene, Program& p, Value x) {
    const Value y = activated(scene, p, x, relu);
    return step::add(p, step::linear(p, y, weight(scene, p, "v", 8, 8)), step::unit_rows(p, y));
  };
  EXPECT_EQ(times("relu-in-linear-gradient", few, read_twice), 0);
}

StepScene::Build sum_of_product(std::int64_t out) {
  return [=](StepScene& scene, Program& p, Value x) {
    return step::aggregate(p, step::linear(p, x, weight(scene, p, "w", out, 8)),
                           {step::gcn_adjacency});
  };
}

TEST(ProductRewrites, SumTheNarrowerSide) {
  EXPECT_EQ(times("sums-first", few, sum_of_product(9)), 1);
  EXPECT_EQ(times("sums-first", few, sum_of_product(8)), 1);
  EXPECT_EQ(times("sums-first", few, sum_of_product(7)), 0);
  expect_same_without("sums-first", few, sum_of_product(9));
  const auto own_rows = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w", 9, 8));
    return step::aggregate_with_own(p, y, y, weight(scene, p, "eps", 1, 1), {step::pattern});
  };
  EXPECT_EQ(times("sums-first", few, own_rows), 1);
  expect_same_without("sums-first", few, own_rows);
}

TEST(ProductRewrites, SumNoProductThatIsReadElsewhere) {
  const auto read_twice = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w", 9, 8));
    return step::add(p, step::aggregate(p, y, {step::gcn_adjacency}), y);
  };
  EXPECT_EQ(times("sums-first", few, read_twice), 0);
  const auto maximum = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w", 9, 8));
    return step::aggregate(p, y, {step::pattern, ops::Reduction::max});
  };
  EXPECT_EQ(times("sums-first", few, maximum), 0);
}

}  // namespace
}  // namespace tessera
