// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/step_scene.hpp"

/// Each rewrite fires where it should, and not where another node still needs what it would take
/// away. That results stay as they are is tested with all kinds of nodes (gradients_test.cpp).
namespace tessera {
namespace {

using step::Program;
using step::Value;
using test::StepScene;

std::int64_t times(const StepScene::Result& result, const std::string& name) {
  for (const step::Fired& one : result.fired) {
    if (one.name == name) return one.times;
  }
  return 0;
}

std::int64_t times(const std::string& name, StepScene::Build build) {
  StepScene scene(7, 4, std::move(build));
  return times(scene.run(), name);
}

constexpr step::ActivationKind relu{ops::Activation::relu};

Value weight(StepScene& scene, Program& p, const char* name, std::int64_t out = 4,
             std::int64_t in = 4) {
  return p.parameter(scene.parameter(name, out, in));
}

TEST(Rewrites, MergeBiasActivationAndDropout) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::unit_rows(p, x);
    const Value biased = step::add_bias(p, y, weight(scene, p, "b", 1));
    return step::dropout(p, step::activate(p, biased, relu), 0.5, 1);
  };
  EXPECT_EQ(times("merge-finishes", build), 2);
}

TEST(Rewrites, KeepTheOrderOfActivationAndBias) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value active = step::activate(p, step::unit_rows(p, x), relu);
    return step::add_bias(p, active, weight(scene, p, "b", 1));
  };
  EXPECT_EQ(times("merge-finishes", build), 0);
}

TEST(Rewrites, DoNotMergeWhatIsReadInBetween) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value biased = step::add_bias(p, step::unit_rows(p, x), weight(scene, p, "b", 1));
    return step::add(p, step::activate(p, biased, relu), biased);
  };
  EXPECT_EQ(times("merge-finishes", build), 0);
}

TEST(Rewrites, FinishSumsWhereTheyAreMade) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value sums = step::aggregate(p, x, {step::gcn_adjacency});
    return step::activate(p, step::add_bias(p, sums, weight(scene, p, "b", 1)), relu);
  };
  EXPECT_EQ(times("finish-in-aggregate", build), 1);
}

TEST(Rewrites, LeaveSumsWhoseDerivativeTheResultDoesNotShow) {
  const auto build = [](StepScene&, Program& p, Value x) {
    return step::activate(p, step::aggregate(p, x, {}), {ops::Activation::elu});
  };
  EXPECT_EQ(times("finish-in-aggregate", build), 0);
}

TEST(Rewrites, LeaveSumsThatAreReadTwice) {
  const auto build = [](StepScene&, Program& p, Value x) {
    const Value sums = step::aggregate(p, x, {});
    return step::add(p, step::activate(p, sums, relu), sums);
  };
  EXPECT_EQ(times("finish-in-aggregate", build), 0);
}

TEST(Rewrites, AddABiasToAProduct) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    return step::add_bias(p, step::linear(p, x, weight(scene, p, "w")), weight(scene, p, "b", 1));
  };
  EXPECT_EQ(times("bias-in-linear", build), 1);
}

TEST(Rewrites, AddNoBiasBeforeAnActivation) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w"));
    return step::activate(p, step::add_bias(p, y, weight(scene, p, "b", 1)), relu);
  };
  EXPECT_EQ(times("bias-in-linear", build), 0);
}

TEST(Rewrites, AddAProductToAMatrix) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w"));
    return step::add(p, y, step::unit_rows(p, x));
  };
  EXPECT_EQ(times("sum-in-linear", build), 1);
}

TEST(Rewrites, AddNoProductThatIsReadElsewhere) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w"));
    return step::add(p, y, step::unit_rows(p, y));
  };
  EXPECT_EQ(times("sum-in-linear", build), 0);
}

TEST(Rewrites, AddAMatrixToSums) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value y = step::linear(p, x, weight(scene, p, "w"));
    return step::add(p, step::aggregate(p, x, {}), y);
  };
  EXPECT_EQ(times("sum-in-aggregate", build), 1);
  const auto read_twice = [](StepScene&, Program& p, Value x) {
    const Value sums = step::aggregate(p, x, {});
    return step::add(p, sums, step::unit_rows(p, sums));
  };
  EXPECT_EQ(times("sum-in-aggregate", read_twice), 0);
}

Value sage(StepScene& scene, Program& p, Value x, Value own) {
  const Value mean = step::aggregate(p, x, {step::pattern, ops::Reduction::mean});
  const Value sum = step::add(p, step::linear(p, mean, weight(scene, p, "w")),
                              step::linear(p, own, weight(scene, p, "root")));
  return step::activate(p, step::add_bias(p, sum, weight(scene, p, "b", 1)), relu);
}

TEST(Rewrites, MultiplySumsOverNeighboursWithTheirWeight) {
  StepScene scene(7, 4, [](StepScene& own, Program& p, Value x) { return sage(own, p, x, x); });
  const auto found = scene.run();
  EXPECT_EQ(times(found, "update-with-aggregate"), 1);
  EXPECT_NE(found.program.find("aggregate_update mean relu"), std::string::npos) << found.program;
  EXPECT_EQ(found.program.find("linear"), std::string::npos) << found.program;
}

TEST(Rewrites, LeaveTheRootWhereRowsAreOthers) {
  StepScene scene(7, 4, [](StepScene& own, Program& p, Value x) {
    return sage(own, p, x, step::unit_rows(p, x));
  });
  const auto found = scene.run();
  EXPECT_EQ(times(found, "update-with-aggregate"), 1);
  EXPECT_NE(found.program.find("linear"), std::string::npos) << found.program;
}

TEST(Rewrites, MultiplyNoMaximum) {
  const auto build = [](StepScene& scene, Program& p, Value x) {
    const Value most = step::aggregate(p, x, {step::pattern, ops::Reduction::max});
    return step::linear(p, most, weight(scene, p, "w"));
  };
  EXPECT_EQ(times("update-with-aggregate", build), 0);
}

TEST(Rewrites, AddGradientsOfOneInputAsTheyAreMade) {
  const auto two_products = [](StepScene& scene, Program& p, Value x) {
    const Value first = step::linear(p, x, weight(scene, p, "w"));
    return step::add(p, step::activate(p, first, relu), step::linear(p, x, weight(scene, p, "v")));
  };
  EXPECT_EQ(times("sum-in-linear-gradient", two_products), 1);
  const auto one_product = [](StepScene& scene, Program& p, Value x) {
    return step::linear(p, x, weight(scene, p, "w"));
  };
  EXPECT_EQ(times("sum-in-linear-gradient", one_product), 0);
}

TEST(Rewrites, ScaleGradientsAsTheyAreAdded) {
  const auto build = [](StepScene&, Program& p, Value x) {
    return step::combine(p, -2, x, 1, step::aggregate(p, x, {}));
  };
  EXPECT_EQ(times("scale-in-sum", build), 1);
  const auto alone = [](StepScene&, Program& p, Value x) { return step::scaled(p, 3, x); };
  EXPECT_EQ(times("scale-in-sum", alone), 0);
}

TEST(Rewrites, CanBeSwitchedOff) {
  StepScene scene(7, 4, [](StepScene&, Program& p, Value x) { return step::unit_rows(p, x); });
  Program program;
  const Value x = program.input("x");
  const Value y = step::activate(program, step::aggregate(program, x, {}), relu);
  const Value kept[] = {y};
  const std::string off[] = {"finish-in-aggregate"};
  const step::Placement placement;
  const step::Context context;
  const step::Surroundings around{kept, placement, context};
  EXPECT_TRUE(step::rewrite(program, around, step::Side::before, off).empty());
  EXPECT_EQ(step::rewrite(program, around, step::Side::before).size(), 1u);
}

TEST(Rewrites, HaveNamesOfTheirOwn) {
  std::vector<std::string> names;
  for (const step::Rewrite& one : step::rewrites()) names.emplace_back(one.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace tessera
