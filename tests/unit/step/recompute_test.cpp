// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "support/step_scene.hpp"

/// Values that are computed again rather than kept.
namespace tessera {
namespace {

using step::Program;
using step::Value;
using test::StepScene;

Value weight(StepScene& scene, Program& program, const std::string& name, std::int64_t size) {
  return program.parameter(scene.parameter(name, size, size));
}

/// Products of many rows, of which each gradient reads what the ones before it gave.
Value deep(StepScene& scene, Program& p, Value x) {
  for (int i = 0; i < 4; ++i) {
    x = step::linear(p, x, weight(scene, p, "w" + std::to_string(i), 8));
    x = step::activate(p, x, {.activation = ops::Activation::elu});
    x = step::aggregate(p, x, {step::pattern, ops::Reduction::mean});
  }
  return x;
}

TEST(Recompute, SavesMemoryAndGivesTheSame) {
  StepScene scene(200, 8, deep);
  const auto kept = scene.run({});
  const auto again = scene.run({.recomputes = true});
  EXPECT_EQ(kept.recomputed.times, 0);
  EXPECT_GT(again.recomputed.times, 0);
  EXPECT_EQ(again.arena_bytes, kept.arena_bytes - again.recomputed.saved_bytes);
  EXPECT_LT(again.arena_bytes, kept.arena_bytes);
  EXPECT_EQ(again.output, kept.output);
  EXPECT_EQ(again.grad_x, kept.grad_x);
  EXPECT_EQ(again.gradients, kept.gradients);
}

TEST(Recompute, LeavesWhatSavesNothing) {
  // One product: its gradients read the input and the weight alone.
  StepScene scene(200, 8, [](StepScene& s, Program& p, Value x) {
    return step::linear(p, x, weight(s, p, "w", 8));
  });
  EXPECT_EQ(scene.run({.recomputes = true}).recomputed.times, 0);
}

/// Batch norm of the columns, which moves its running means, once in a step.
Value normed(StepScene& s, Program& p, Value x, const std::string& number) {
  const step::BatchNormValues values{p.parameter(s.parameter("gamma" + number, 1, 8)),
                                     p.parameter(s.parameter("beta" + number, 1, 8)),
                                     p.state("mean", s.state("mean" + number, 8, 0)),
                                     p.state("variance", s.state("variance" + number, 8, 1))};
  return step::batch_norm(p, x, values, {.training = true});
}

TEST(Recompute, LeavesOpsThatChangeMoreThanTheirResult) {
  StepScene scene(200, 8, [](StepScene& s, Program& p, Value x) {
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      x = normed(s, p, step::linear(p, x, weight(s, p, "w" + number, 8)), number);
    }
    return x;
  });
  const auto once = scene.run({.recomputes = true});
  std::size_t norms = 0, from = 0;
  while ((from = once.program.find(": batch_norm (", from)) != std::string::npos) ++norms, ++from;
  EXPECT_EQ(norms, 3u) << once.program;
}

TEST(Recompute, RepeatsProductsThatNormaliseWhatTheyRead) {
  // As GIN has them: with many rows a product reads what batch norm did not write.
  constexpr std::int64_t many = 33000;
  StepScene scene(many, 8, [](StepScene& s, Program& p, Value x) {
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      x = step::aggregate(p, x, {});
      x = normed(s, p, step::linear(p, x, weight(s, p, "w" + number, 8)), number);
      x = step::activate(p, x, {.activation = ops::Activation::relu});
      x = step::linear(p, x, weight(s, p, "v" + number, 8));
      x = step::activate(p, x, {.activation = ops::Activation::relu});
    }
    return x;
  });
  const auto kept = scene.run({});
  EXPECT_TRUE(std::ranges::any_of(
      kept.fired, [](const step::Fired& one) { return one.name == "norm-in-linear"; }));
  const auto again = scene.run({.recomputes = true});
  EXPECT_GT(again.recomputed.times, 0);
  EXPECT_LT(again.arena_bytes, kept.arena_bytes);
  EXPECT_EQ(again.output, kept.output);
  EXPECT_EQ(again.grad_x, kept.grad_x);
  EXPECT_EQ(again.gradients, kept.gradients);
}

TEST(Recompute, TakesLayersOfAttention) {
  // Scores of both ends come from one op, of which gradients read both results.
  StepScene scene(300, 8, [](StepScene& s, Program& p, Value x) {
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      step::AttentionValues values;
      values.value = step::linear(p, x, weight(s, p, "w" + number, 8));
      std::tie(values.source, values.target) =
          step::head_dots(p, values.value, p.parameter(s.parameter("source" + number, 1, 8)),
                          p.parameter(s.parameter("target" + number, 1, 8)), 2);
      x = step::attend(p, {.heads = 2, .derivation = step::pattern_with_self_loops}, values);
      x = step::activate(p, x, {.activation = ops::Activation::elu});
    }
    return x;
  });
  const auto kept = scene.run({}), again = scene.run({.recomputes = true});
  EXPECT_GT(again.recomputed.times, 0);
  EXPECT_EQ(again.output, kept.output);
  EXPECT_EQ(again.grad_x, kept.grad_x);
  EXPECT_EQ(again.gradients, kept.gradients);
}

}  // namespace
}  // namespace tessera
