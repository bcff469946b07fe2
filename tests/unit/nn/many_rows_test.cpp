// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "support/dense_workspace.hpp"
#include "support/random_matrix.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/elementwise.hpp"

/// Models of so many rows that layers on a GPU do the work of their neighbours.
namespace tessera::nn {
namespace {

constexpr VertexId vertices = 33333;

Graph ring() {
  std::vector<VertexId> sources, targets;
  for (VertexId v = 0; v < vertices; ++v) {
    sources.push_back(v);
    targets.push_back((v + 1) % vertices);
  }
  return from_edges(vertices, sources, targets);
}

/// Every vertex has 30 sources, and neighbours have few of them in common.
Graph scattered() {
  std::vector<VertexId> sources, targets;
  for (VertexId v = 0; v < vertices; ++v) {
    for (VertexId k = 1; k <= 30; ++k) {
      sources.push_back((v + 523 * k * k) % vertices);
      targets.push_back(v);
    }
  }
  return from_edges(vertices, sources, targets);
}

/// The gradients of all parameters in training, or outside of it after a pass in training.
std::vector<Matrix<double>> gradients_of(const Graph& graph, const ModelConfig& config,
                                         std::int64_t features, std::int64_t outputs,
                                         const Placement& placement, bool training = true) {
  Topology topology(graph, placement.device());
  Context context;
  context.graph = &topology;
  context.training = true;
  context.workspace = test::workspace_on(placement.device());
  Model model(config, features, outputs, 11, placement);
  Tensor x(placement), grad(placement);
  const auto random = [](std::int64_t cols, std::uint64_t seed) {
    return testing::random_matrix<float>(vertices, cols, testing::NumberKind::normal, seed);
  };
  if (!training) {
    x.upload(random(features, 3).view());
    model.forward(x, context);
    context.training = false;
  }
  x.upload(random(features, 1).view());
  grad.upload(random(outputs, 2).view());
  model.forward(x, context);
  model.backward(grad, context);
  std::vector<Matrix<double>> gradients;
  for (const NamedParameter& named : model.parameters()) {
    Tensor wide({Precision::fp64});
    Tensor copy({named.parameter->gradient.precision()});
    copy.resize(named.parameter->gradient.rows(), named.parameter->gradient.cols());
    ops::download(named.parameter->gradient, copy, placement.device(), {});
    synchronise(placement.device());
    wide.copy_from(copy);
    Matrix<double> numbers(wide.rows(), wide.cols());
    for (std::int64_t i = 0; i < wide.rows(); ++i) {
      for (std::int64_t j = 0; j < wide.cols(); ++j) numbers(i, j) = wide.as<double>()(i, j);
    }
    gradients.push_back(std::move(numbers));
  }
  return gradients;
}

/// Where a number is almost 0, ReLU may see another sign: single terms of long sums differ.
void expect_close(const std::vector<Matrix<double>>& got,
                  const std::vector<Matrix<double>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    double largest = 1;
    for (const double number : expected[k].span()) largest = std::max(largest, std::abs(number));
    for (std::int64_t i = 0; i < got[k].size(); ++i) {
      ASSERT_NEAR(got[k].data()[i], expected[k].data()[i], 5e-3 * largest)
          << "parameter " << k << ", number " << i;
    }
  }
}

void expect_gradients_of_double(ModelKind kind, std::int64_t features, std::int64_t hidden,
                                std::int64_t outputs) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 2;
  config.hidden = hidden;
  config.batch_norm = true;
  config.dropout = 0;
  const Placement gpu{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  expect_close(gradients_of(ring(), config, features, outputs, gpu),
               gradients_of(ring(), config, features, outputs, Placement{Precision::fp64}));
}

TEST(ManyRows, gradients_of_gin_are_those_of_double_precision_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_gradients_of_double(ModelKind::gin, 72, 64, 2);
  expect_gradients_of_double(ModelKind::gin, 75, 64, 3);
  expect_gradients_of_double(ModelKind::gin, 136, 64, 2);  // multiplied before they are summed
  expect_gradients_of_double(ModelKind::gin, 16, 32, 12);
}

TEST(ManyRows, gradients_of_agnn_are_those_of_double_precision_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  for (const std::int64_t hidden : {12, 64, 128}) {
    expect_gradients_of_double(ModelKind::agnn, 40, hidden, 2);
  }
}

/// What attention keeps for its backward pass is of a pass in training: one outside keeps nothing.
TEST(ManyRows, gradients_outside_of_training_are_those_of_the_last_pass_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  ModelConfig config;
  config.kind = ModelKind::gat;
  config.layers = 2;
  config.hidden = 16;
  config.dropout = 0;
  const Graph graph = scattered();
  const Placement gpu{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  expect_close(gradients_of(graph, config, 24, 5, gpu, false),
               gradients_of(graph, config, 24, 5, Placement{Precision::fp64}, false));
}

}  // namespace
}  // namespace tessera::nn
