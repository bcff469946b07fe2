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

/// The gradients of all parameters.
std::vector<Matrix<double>> gradients_of(const ModelConfig& config, std::int64_t features,
                                         std::int64_t outputs, const Placement& placement) {
  Topology topology(ring(), placement.device());
  Context context;
  context.graph = &topology;
  context.training = true;
  context.workspace = test::workspace_on(placement.device());
  Model model(config, features, outputs, 11, placement);
  Tensor x(placement), grad(placement);
  const auto random = [](std::int64_t cols, std::uint64_t seed) {
    return testing::random_matrix<float>(vertices, cols, testing::NumberKind::normal, seed);
  };
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
void expect_gradients_of_double(ModelKind kind, std::int64_t features, std::int64_t hidden,
                                std::int64_t outputs) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 2;
  config.hidden = hidden;
  config.batch_norm = true;
  config.dropout = 0;
  const Placement gpu{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  const auto got = gradients_of(config, features, outputs, gpu);
  const auto expected = gradients_of(config, features, outputs, Placement{Precision::fp64});
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

}  // namespace
}  // namespace tessera::nn
