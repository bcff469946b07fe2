// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/step_scene.hpp"
#include "tessera/step/op.hpp"

namespace tessera {
namespace {

using step::Program;
using step::Value;
using test::StepScene;

/// y = x^3, an op from outside of the library.
class Cube final : public step::Op {
 public:
  std::string describe() const override { return "cube"; }
  void shape(step::Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const step::Pass& pass) const override {
    const auto x = pass.in(0).as<double>();
    const auto y = pass.out(0).as<double>();
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t j = 0; j < x.cols; ++j) y(i, j) = x(i, j) * x(i, j) * x(i, j);
    }
  }
  void differentiate(step::Adjoint& adjoint) const override;
};

class CubeGradient final : public step::Op {
 public:
  std::string describe() const override { return "cube_gradient"; }
  void shape(step::Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  int updates() const override { return 1; }
  void run(const step::Pass& pass) const override {
    const auto x = pass.in(0).as<double>();
    const auto y = pass.out(0).as<double>();
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t j = 0; j < x.cols; ++j) y(i, j) *= 3 * x(i, j) * x(i, j);
    }
  }
};

void Cube::differentiate(step::Adjoint& adjoint) const {
  adjoint.give(0, adjoint.program().append(std::make_shared<CubeGradient>(),
                                           {adjoint.in(0), adjoint.gradient()}));
}

/// The same without a rule.
class Opaque final : public step::Op {
 public:
  std::string describe() const override { return "opaque"; }
  void shape(step::Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const step::Pass&) const override {}
};

TEST(Program, TakesAnOpFromOutside) {
  StepScene scene(6, 3, [](StepScene&, Program& p, Value x) {
    const Value sums = step::aggregate(p, x, {});
    return p.append(std::make_shared<Cube>(), {sums});
  });
  scene.expect_gradients();
}

TEST(Program, SaysWhichOpHasNoGradient) {
  Program program;
  const Value x = program.input("x", true);
  const Value y = program.append(std::make_shared<Opaque>(), {x});
  const Value dy = program.scratch_input("dy", y);
  const Value of[] = {x};
  testing::expect_error(ErrorCode::unsupported, {"opaque", "Op::differentiate"},
                        [&] { step::differentiate(program, y, dy, of); });
}

TEST(Program, GivesNoGradientToWhatDoesNotMatter) {
  StepScene scene(6, 3, [](StepScene& scene_, Program& p, Value x) {
    p.parameter(scene_.parameter("unused", 2, 3));
    const Value a = step::linear(p, x, p.parameter(scene_.parameter("w", 3, 3)));
    scene_.parameter("fixed", 3, 3).trainable = false;
    const Value b = step::linear(p, x, p.parameter(scene_.parameter("fixed", 3, 3)));
    return step::add(p, a, b);
  });
  const auto found = scene.run();
  EXPECT_EQ(found.gradients.at("unused"), std::vector<double>(6, 0.0));
  EXPECT_EQ(found.gradients.at("fixed"), std::vector<double>(9, 0.0));  // as it was made
  EXPECT_NE(found.gradients.at("w"), std::vector<double>(9, 0.0));
}

TEST(Program, RemovesWhatContributesToNothing) {
  Program program;
  const Value x = program.input("x");
  step::unit_rows(program, x);
  const Value y = step::scaled(program, 2, x);
  const Value wanted[] = {y};
  program.remove_unused(wanted);
  EXPECT_EQ(program.nodes().size(), 1u);
  EXPECT_EQ(program.describe(), program.info(y).name + ": scale 2 (x)\n");
}

TEST(Execution, SharesMemoryOfValuesThatDoNotLiveTogether) {
  StepScene scene(50, 8, [](StepScene&, Program& p, Value x) {
    Value y = x;
    for (int k = 0; k < 6; ++k) y = step::aggregate(p, y, {step::gcn_adjacency});
    return y;
  });
  const auto found = scene.run();
  // Only two of the eleven sums and gradients in between are needed at a time.
  EXPECT_LE(5 * found.arena_bytes, found.unshared_bytes);
}

TEST(Execution, LeavesInputsAsTheyAre) {
  StepScene scene(6, 3, [](StepScene&, Program& p, Value x) {
    return step::activate(p, x, {ops::Activation::relu});
  });
  const std::vector<double> before = test::elements_of(scene.x);
  scene.run();
  EXPECT_EQ(test::elements_of(scene.x), before);
}

TEST(Execution, SaysWhatIsMissing) {
  Program program;
  const Value x = program.input("features");
  const Value y = step::aggregate(program, x, {});
  step::Tensor result(test::double_placement());
  step::Execution execution(std::move(program), test::double_placement());
  execution.keep(y, result);
  testing::expect_error(ErrorCode::invalid_argument, {"'features'", "bind"},
                        [&] { execution.prepare(step::Context()); });
  step::Tensor rows = test::normal_tensor(3, 2, 1);
  execution.bind(x, step::Input(rows));
  testing::expect_error(ErrorCode::invalid_argument, {"graph 0"},
                        [&] { execution.prepare(step::Context()); });
}

TEST(Execution, RefusesShapesThatDoNotFit) {
  StepScene narrow(6, 3, [](StepScene& scene, Program& p, Value x) {
    return step::linear(p, x, p.parameter(scene.parameter("w", 4, 5)));
  });
  testing::expect_error(ErrorCode::invalid_argument, {"3 features", "4 x 5"},
                        [&] { narrow.run(); });
}

}  // namespace
}  // namespace tessera
