// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "step/ops/finish.hpp"
#include "support/dense_workspace.hpp"
#include "support/gradient_check.hpp"
#include "support/random_matrix.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/rewrites.hpp"

/// A product that finishes its rows itself against the product and what follows, one after the
/// other: the same results and gradients.
namespace tessera {
namespace {

using step::Value;

struct Case {
  step::ActivationKind kind;
  double dropout = 0;
  bool training = false;
  bool has_residual = false;
  std::int64_t width = 0;
};

step::Tensor random_tensor(std::int64_t rows, std::int64_t width, std::uint64_t seed,
                           const step::Placement& placement) {
  step::Tensor tensor(placement);
  tensor.upload(
      testing::random_matrix<float>(rows, width, testing::NumberKind::normal, seed).view());
  return tensor;
}

Matrix<float> on_host(const step::Tensor& tensor) {
  Matrix<float> copy(tensor.rows(), tensor.cols());
  ops::download(tensor, copy, tensor.device(), {});
  synchronise(tensor.device());
  return copy;
}

void expect_same(const Matrix<float>& a, const Matrix<float>& b, const char* what) {
  ASSERT_EQ(a.rows(), b.rows());
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const float expected = b.data()[i];
    ASSERT_NEAR(a.data()[i], expected, 2e-5 * (1 + std::abs(expected))) << what << " " << i;
  }
}

struct Result {
  Matrix<float> y, grad_x, grad_bias;
  std::size_t num_nodes = 0;
};

Result result_of(const Case& given, const std::vector<std::string>& off, Device device) {
  const step::Placement placement{Precision::fp32, &default_memory(device)};
  step::Topology topology(test::weighted_graph(70, 70, 400, 3), device);
  step::Context context;
  context.graph = &topology;
  context.training = given.training;
  context.seed = 9;
  context.step = 4;
  context.workspace = test::workspace_on(device);
  step::Parameter bias("bias", 1, given.width, step::Initial::uniform(0.5), placement);
  bias.reset(Random(5));
  step::Tensor x = random_tensor(70, given.width, 1, placement);
  step::Tensor residual = random_tensor(70, given.width, 2, placement);
  step::Program program;
  const Value input = program.input("x", true), other = program.input("residual");
  Value y = step::aggregate(program, input, {step::gcn_adjacency});
  if (given.has_residual) y = step::add(program, y, other);
  y = step::activate(program, step::add_bias(program, y, program.parameter(bias)), given.kind);
  y = step::dropout(program, y, given.training ? given.dropout : 0, 7);
  const Value results[] = {y};
  step::rewrite(program, {results, placement, context}, step::Side::before, off);
  Result result;
  result.num_nodes = program.nodes().size();
  const Value gradient = program.scratch_input("dy", y), of[] = {input};
  const Value grad_x = step::differentiate(program, y, gradient, of)[0];
  step::Execution execution(program, placement);
  step::Tensor output(placement), to_x(placement);
  step::Tensor grad = random_tensor(70, given.width, 4, placement);
  execution.keep(y, output);
  execution.keep(grad_x, to_x);
  execution.bind(input, step::Input(x));
  execution.bind(other, step::Input(residual));
  execution.bind_scratch(gradient, grad);
  execution.prepare(context);
  execution.run(0, program.nodes().size(), context);
  result.y = on_host(output);
  result.grad_x = on_host(to_x);
  result.grad_bias = on_host(bias.gradient);
  return result;
}

void compare(const Case& given, Device device) {
  const std::vector<std::string> apart = {"finish-in-aggregate", "sum-in-aggregate"};
  const Result together = result_of(given, {}, device), staged = result_of(given, apart, device);
  EXPECT_EQ(together.num_nodes, 1u);
  EXPECT_GT(staged.num_nodes, 1u);
  expect_same(together.y, staged.y, "result");
  expect_same(together.grad_x, staged.grad_x, "gradient");
  expect_same(together.grad_bias, staged.grad_bias, "bias gradient");
}

void compare_all(Device device) {
  using ops::Activation;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::leaky_relu}) {
    for (const double dropout : {0.0, 0.5}) {
      for (const bool training : {false, true}) {
        for (const bool residual : {false, true}) {
          SCOPED_TRACE(::testing::Message() << to_string(activation) << ", dropout " << dropout
                                            << (training ? ", training" : ""));
          for (const std::int64_t width : {1, 7, 16}) {
            compare({{activation, 0.1, 1}, dropout, training, residual, width}, device);
          }
        }
      }
    }
  }
}

TEST(FinishedProduct, IsTheProductAndWhatFollows) { compare_all({}); }

TEST(FinishedProduct, IsTheSameOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  compare_all({DeviceKind::cuda, 0});
}

TEST(FinishedProduct, IsNotTriedOnLargeRowsThatDoNotFillVectors) {
  const step::Tensor odd(3, 7), large_odd(40000, 7), large(40000, 16);
  EXPECT_TRUE(step::finishes_cheaply(odd));
  EXPECT_FALSE(step::finishes_cheaply(large_odd));
  EXPECT_TRUE(step::finishes_cheaply(large));
}

}  // namespace
}  // namespace tessera
