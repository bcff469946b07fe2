// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/dense_workspace.hpp"
#include "support/gradient_check.hpp"
#include "support/random_matrix.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/nn/gin.hpp"
#include "tessera/nn/sage.hpp"

/// Layers that sum and multiply by one op against the same layers in stages: the same results and
/// gradients.
namespace tessera::nn {
namespace {

Matrix<double> on_host(const Tensor& tensor) {
  Matrix<double> numbers(tensor.rows(), tensor.cols());
  synchronise(tensor.device());
  const auto copy = [&]<class T>() {
    Matrix<T> rows(tensor.rows(), tensor.stride());
    copy_bytes(rows.data(), tensor.bytes(), static_cast<std::size_t>(rows.size()) * sizeof(T),
               tensor.device());
    synchronise(tensor.device());
    for (std::int64_t i = 0; i < numbers.rows(); ++i) {
      for (std::int64_t j = 0; j < numbers.cols(); ++j) numbers(i, j) = rows(i, j);
    }
  };
  tensor.precision() == Precision::fp64 ? copy.operator()<double>() : copy.operator()<float>();
  return numbers;
}

struct Results {
  std::vector<Matrix<double>> all;  ///< output, gradient of the input, of every parameter
};

using MakeLayer = std::function<std::unique_ptr<PairLayer>(const Placement&)>;

Results results_of(const MakeLayer& make, const Graph& graph, std::int64_t in, Fusing fusing,
                   bool training, const Placement& placement) {
  const Device device = placement.device();
  Topology topology(graph, device);
  topology.set_fusing(fusing);
  Context context;
  context.graph = &topology;
  context.training = training;
  context.seed = 3;
  context.step = 5;
  context.workspace = test::workspace_on(device);
  const std::unique_ptr<PairLayer> layer = make(placement);
  layer->reset_parameters(11);
  layer->set_needs_input_gradient(true);
  Tensor x(placement);
  x.upload(
      testing::random_matrix<float>(graph.num_rows(), in, testing::NumberKind::normal, 1).view());
  Results results;
  const Tensor& y = layer->forward(x, context);
  results.all.push_back(on_host(y));
  if (!training) return results;
  Tensor grad(placement);
  grad.upload(
      testing::random_matrix<float>(y.rows(), y.cols(), testing::NumberKind::normal, 2).view());
  results.all.push_back(on_host(*layer->backward(grad, context)));
  for (const NamedParameter& named : layer->parameters()) {
    results.all.push_back(on_host(named.parameter->gradient));
  }
  return results;
}

void compare(const MakeLayer& make, const Graph& graph, std::int64_t in, bool training,
             const Placement& placement, double tolerance) {
  const Results fused = results_of(make, graph, in, Fusing::always, training, placement);
  const Results staged = results_of(make, graph, in, Fusing::never, training, placement);
  ASSERT_EQ(fused.all.size(), staged.all.size());
  for (std::size_t k = 0; k < fused.all.size(); ++k) {
    ASSERT_EQ(fused.all[k].rows(), staged.all[k].rows());
    double largest = 1;
    for (const double number : staged.all[k].span()) largest = std::max(largest, std::abs(number));
    for (std::int64_t i = 0; i < fused.all[k].size(); ++i) {
      ASSERT_NEAR(fused.all[k].data()[i], staged.all[k].data()[i], tolerance * largest)
          << "result " << k << ", number " << i;
    }
  }
}

void compare_sage(const Graph& graph, const Placement& placement, double tolerance) {
  using ops::Activation;
  for (const SageAggregation aggregation : {SageAggregation::mean, SageAggregation::gcn}) {
    for (const Activation activation :
         {Activation::none, Activation::relu, Activation::leaky_relu, Activation::elu}) {
      for (const bool odd : {false, true}) {
        SageOptions options;
        options.in = 12;
        options.out = 20;
        options.aggregation = aggregation;
        options.root_weight = !odd;
        options.normalise = odd;
        options.output = {!odd, activation, 0.1, 1, odd ? 0 : 0.3};
        const MakeLayer make = [&](const Placement& where) {
          return std::make_unique<Sage>(options, where);
        };
        for (const bool training : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << to_string(aggregation) << ", " << to_string(activation)
                       << (odd ? ", odd" : "") << (training ? ", training" : ""));
          compare(make, graph, options.in, training, placement, tolerance);
        }
      }
    }
  }
}

TEST(FusedUpdate, sage_is_the_same_in_stages) {
  compare_sage(test::weighted_graph(60, 60, 300, 4), test::double_placement(), 1e-12);
}

TEST(FusedUpdate, sage_is_the_same_on_device_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Placement placement{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  compare_sage(test::weighted_graph(300, 300, 1200, 4), placement, 2e-5);
}

void compare_gin(const Graph& graph, const Placement& placement, double tolerance) {
  for (const bool batch_norm : {false, true}) {
    for (const bool train_eps : {false, true}) {
      GinOptions options;
      options.in = 12;
      options.hidden = 16;
      options.out = 20;
      options.eps = 0.3;
      options.train_eps = train_eps;
      options.batch_norm = batch_norm;
      const MakeLayer make = [&](const Placement& where) {
        return std::make_unique<Gin>(options, where);
      };
      for (const bool training : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << (batch_norm ? "batch norm" : "no batch norm")
                     << (train_eps ? ", trained eps" : "") << (training ? ", training" : ""));
        compare(make, graph, options.in, training, placement, tolerance);
      }
    }
  }
}

TEST(FusedUpdate, gin_is_the_same_in_stages) {
  compare_gin(test::weighted_graph(60, 60, 300, 4), test::double_placement(), 1e-12);
}

TEST(FusedUpdate, gin_is_the_same_on_device_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Placement placement{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  compare_gin(test::weighted_graph(300, 300, 1200, 4), placement, 2e-5);
}

/// A batch norm in training wants moments of the product: that stays a product of its own.
TEST(FusedUpdate, gin_asks_where_nothing_is_lost) {
  for (const bool batch_norm : {false, true}) {
    for (const bool training : {false, true}) {
      const Placement placement = test::double_placement();
      Topology topology(test::weighted_graph(60, 60, 300, 4));
      topology.set_fusing(Fusing::always);
      Context context;
      context.graph = &topology;
      context.training = training;
      context.workspace = test::workspace_on(placement.device());
      GinOptions options;
      options.in = options.out = 8;
      options.batch_norm = batch_norm;
      Gin layer(options, placement);
      layer.reset_parameters(1);
      Tensor x(placement);
      x.upload(testing::random_matrix<float>(60, 8, testing::NumberKind::normal, 1).view());
      layer.forward(x, context);
      std::size_t fused = 0;
      for (const auto& [derivation, asked] : topology.requests().aggregate_update) {
        EXPECT_EQ(asked.keep_aggregated, training);
        ++fused;
      }
      EXPECT_EQ(fused, batch_norm && training ? 0u : 1u);
    }
  }
}

TEST(FusedUpdate, is_left_to_the_cost_model) {
  Topology topology(test::weighted_graph(60, 60, 300, 4));
  ops::AggregateUpdateOptions options;
  options.in = options.out = 8;
  EXPECT_TRUE(topology.fused_update(pattern, options).empty());
  topology.set_fusing(Fusing::always);
  const ops::AggregateUpdatePlan plan = topology.fused_update(pattern, options);
  EXPECT_FALSE(plan.empty());
  EXPECT_EQ(topology.requests().aggregate_update.size(), 1u);
  Topology other(test::weighted_graph(70, 70, 300, 5));
  other.set_fusing(Fusing::always);
  other.plan(topology.requests());
  EXPECT_EQ(other.requests().aggregate_update.size(), 1u);
}

}  // namespace
}  // namespace tessera::nn
